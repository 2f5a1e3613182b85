// A heat map with more cells than fit with numbers: colors on a canvas, and the pointed-at cell in words below it.
import { useEffect, useRef, useState, type KeyboardEvent } from 'react';
import {
  colorStrength,
  columnMaxima,
  denseHeight,
  LABEL_WIDTH,
  labeledRows,
  logScaleMin,
  niceInterval,
  type HeatMapNouns,
  type HeatMapProps,
} from './heat';
import css from './HeatMap.module.css';

/** Layout, px. */
const GAP = 2;
const STATUS_HEIGHT = 18;
const LINE_HEIGHT = 14;
/** Width reserved for the name of a column, px. */
const COLUMN_NAME_WIDTH = 110;

interface Cell {
  row: number;
  column: number;
}

interface DenseMapProps extends HeatMapProps {
  width: number;
  nouns: HeatMapNouns;
}

export function DenseMap(props: DenseMapProps) {
  const { title, rows, columns, values, max, color, format, width, nouns } = props;
  const { highlightedRows, highlightedColumn, log, rulers, onPick, onBrush } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const [pointed, setPointed] = useState<Cell | null>(null);
  const [focused, setFocused] = useState(false);
  const [brush, setBrush] = useState<readonly [number, number] | null>(null);
  const inner = Math.max(width - LABEL_WIDTH, 1);
  const height = denseHeight(rows.length);
  const cellWidth = inner / Math.max(columns.length, 1);
  const cellHeight = height / Math.max(rows.length, 1);
  useEffect(() => {
    const node = canvas.current!;
    const ratio = window.devicePixelRatio || 1;
    node.width = inner * ratio;
    node.height = height * ratio;
    const context = node.getContext('2d')!;
    context.scale(ratio, ratio);
    const style = getComputedStyle(node);
    const [fullColor, emptyColor] = [style.getPropertyValue(color), style.getPropertyValue('--sf-2')];
    context.fillStyle = emptyColor;
    context.fillRect(0, 0, inner, height);
    const gap = Math.min(cellWidth, cellHeight) > 6 ? GAP : 0;
    const cells = values.flatMap((line, i) =>
      line.flatMap((value, j) =>
        value === null ? [] : [{ i, j, strength: colorStrength(value, max, log) }],
      ),
    );
    if (Math.min(cellWidth, cellHeight) < 1) {
      cells.sort((a, b) => a.strength - b.strength); // where several share a pixel, the largest is drawn last
    }
    for (const { i, j, strength } of cells) {
      const box = [
        Math.floor(j * cellWidth),
        Math.floor(i * cellHeight),
        Math.max(Math.ceil(cellWidth) - gap, 1),
        Math.max(Math.ceil(cellHeight) - gap, 1),
      ] as const;
      context.globalAlpha = 1;
      context.fillStyle = emptyColor;
      context.fillRect(...box);
      context.globalAlpha = 0.08 + 0.92 * strength;
      context.fillStyle = fullColor;
      context.fillRect(...box);
    }
  }, [values, max, log, color, inner, height, cellWidth, cellHeight]);
  const cellAt = (event: React.MouseEvent) => {
    const box = canvas.current!.getBoundingClientRect();
    return {
      row: Math.min(Math.max(Math.floor((event.clientY - box.top) / cellHeight), 0), rows.length - 1),
      column: Math.min(Math.max(Math.floor((event.clientX - box.left) / cellWidth), 0), columns.length - 1),
    };
  };
  const range = brush && ([Math.min(...brush), Math.max(...brush)] as const);
  const onKeyDown = (event: KeyboardEvent) => {
    if (!pointed) {
      return;
    }
    const next = neighborCell(pointed, event.key, rows.length - 1, columns.length - 1);
    if (next) {
      event.preventDefault();
      setPointed(next);
      setBrush(event.shiftKey && onBrush ? [brush?.[0] ?? pointed.column, next.column] : null);
    } else if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      if (range && range[1] > range[0]) {
        onBrush?.(...range);
      } else {
        onPick?.(pointed.row, pointed.column);
      }
      setBrush(null);
    } else if (event.key === 'Escape' && brush) {
      event.stopPropagation();
      setBrush(null);
    }
  };
  const value = pointed ? (values[pointed.row]?.[pointed.column] ?? null) : null;
  const rowsPerLabel = Math.max(1, Math.ceil(LINE_HEIGHT / cellHeight));
  const labeled = labeledRows(rows.length, rowsPerLabel, highlightedRows);
  return (
    <>
      {rulers && <ColumnMaxima {...{ values, columns, max, color, format, log, cellWidth }} />}
      <div className={css.dense} style={{ height }}>
        <div className={css.labels} style={{ width: LABEL_WIDTH }}>
          {labeled.map(i => (
            <span
              key={i}
              className={highlightedRows?.has(i) ? 'strong' : ''}
              style={{ top: (i + 0.5) * cellHeight - LINE_HEIGHT / 2 }}
              title={rows[i]}
            >
              {nouns.row}
              {rows[i]}
            </span>
          ))}
        </div>
        {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- an application has the keys */}
        <div
          className={css.keys}
          role="application"
          // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- an application has the keys
          tabIndex={0}
          aria-label={`${title}: arrow keys move between cells${onPick ? ', Enter opens one' : ''}${
            onBrush ? ', Shift+arrow selects columns' : ''
          }`}
          onFocus={() => {
            setFocused(true);
            setPointed(
              cell => cell ?? { row: [...(highlightedRows ?? [])][0] ?? 0, column: highlightedColumn ?? 0 },
            );
          }}
          onBlur={() => {
            setFocused(false);
            setPointed(null);
          }}
          onKeyDown={onKeyDown}
        >
          <canvas
            ref={canvas}
            style={{ width: inner, height }}
            onPointerDown={event => {
              if (onBrush && event.button === 0) {
                event.currentTarget.setPointerCapture(event.pointerId);
                const { column } = cellAt(event);
                setBrush([column, column]);
              }
            }}
            onPointerMove={event => {
              const cell = cellAt(event);
              setPointed(cell);
              setBrush(started => started && [started[0], cell.column]);
            }}
            onPointerUp={() => {
              if (range && range[1] > range[0]) {
                onBrush?.(...range);
              }
            }}
            onPointerCancel={() => setBrush(null)}
            onMouseLeave={() => !focused && setPointed(null)}
            onClick={event => {
              const cell = cellAt(event);
              if (!range || range[0] === range[1]) {
                onPick?.(cell.row, cell.column);
              }
              setBrush(null);
            }}
          />
        </div>
        {focused && pointed && (
          <i
            className={css.current}
            data-part="cell-here"
            style={{
              left: LABEL_WIDTH + pointed.column * cellWidth,
              top: pointed.row * cellHeight,
              width: Math.max(cellWidth, 3),
              height: Math.max(cellHeight, 3),
            }}
          />
        )}
        {range && range[1] > range[0] && (
          <i
            className={css.brush}
            data-part="brush"
            style={{ left: LABEL_WIDTH + range[0] * cellWidth, width: (range[1] - range[0] + 1) * cellWidth }}
          />
        )}
        {highlightedColumn !== undefined && (
          <i
            className={css.mark}
            data-part="marked-column"
            style={{ left: LABEL_WIDTH + highlightedColumn * cellWidth, width: Math.max(cellWidth, 2) }}
          />
        )}
      </div>
      {rulers && <ColumnNames {...{ columns, cellWidth, inner }} />}
      <p className={`${css.status} dim`} style={{ height: STATUS_HEIGHT }} role="status">
        {range && range[1] > range[0]
          ? `${nouns.columns}${columns[range[0]]} to ${columns[range[1]]}`
          : pointed
            ? `${nouns.row}${rows[pointed.row]}, ${nouns.column}${columns[pointed.column]}: ${value === null ? 'unknown' : (props.describe ?? format)(value)}`
            : `${nouns.columns}${columns[0]} to ${columns[columns.length - 1]}, left to right${
                log
                  ? `; log scale, lightest up to ${format(logScaleMin(max))}, strongest at ${format(max)}`
                  : ''
              }${onBrush ? '; drag across columns to show only them' : ''}`}
      </p>
    </>
  );
}

/** Return the cell that a key moves to, or undefined for other keys. */
function neighborCell(
  { row, column }: Cell,
  key: string,
  lastRow: number,
  lastColumn: number,
): Cell | undefined {
  switch (key) {
    case 'ArrowUp':
      return { row: Math.max(row - 1, 0), column };
    case 'ArrowDown':
      return { row: Math.min(row + 1, lastRow), column };
    case 'ArrowLeft':
      return { row, column: Math.max(column - 1, 0) };
    case 'ArrowRight':
      return { row, column: Math.min(column + 1, lastColumn) };
    case 'Home':
      return { row, column: 0 };
    case 'End':
      return { row, column: lastColumn };
    default:
      return undefined;
  }
}

type ColumnMaximaProps = Pick<HeatMapProps, 'values' | 'columns' | 'max' | 'color' | 'format' | 'log'> & {
  cellWidth: number;
};

/** The greatest value of every column as a bar; the highest bar has its value beside it. */
function ColumnMaxima({ values, columns, max, color, format, log, cellWidth }: ColumnMaximaProps) {
  const maxima = columnMaxima(values, columns.length);
  const highest = maxima.reduce<number>(
    (best, value, i) => ((value ?? -1) > (maxima[best] ?? -1) ? i : best),
    0,
  );
  const labelOnLeft = highest > columns.length / 2;
  return (
    <div className={css.maxima} style={{ marginLeft: LABEL_WIDTH }} data-part="column-maxima">
      {maxima.map((value, i) => (
        <i
          key={columns[i]}
          style={{
            left: i * cellWidth,
            width: Math.max(cellWidth - (cellWidth > 6 ? 2 : 0), 1),
            height: `${100 * colorStrength(value ?? 0, max, log)}%`,
            background: `var(${color})`,
          }}
        />
      ))}
      {maxima[highest] !== null && maxima[highest] !== undefined && (
        <span
          className="num"
          style={{
            left: labelOnLeft ? undefined : (highest + 1) * cellWidth + 4,
            right: labelOnLeft ? `calc(100% - ${highest * cellWidth - 4}px)` : undefined,
          }}
        >
          {format(maxima[highest])}
        </span>
      )}
    </div>
  );
}

/** The names of as many columns as fit. */
function ColumnNames({
  columns,
  cellWidth,
  inner,
}: {
  columns: readonly string[];
  cellWidth: number;
  inner: number;
}) {
  const interval = niceInterval(COLUMN_NAME_WIDTH / cellWidth);
  const labeled = columns.flatMap((name, i) =>
    i % interval === 0 && (i + interval / 2) * cellWidth < inner ? [[name, i] as const] : [],
  );
  return (
    <div className={css.names} style={{ marginLeft: LABEL_WIDTH }} data-part="column-names">
      {labeled.map(([name, i]) => (
        <span key={name} style={{ left: i * cellWidth, maxWidth: interval * cellWidth - 8 }} title={name}>
          {name}
        </span>
      ))}
    </div>
  );
}
