// A map of more cells than have room for a number: colors on a canvas, what is pointed at in words below it.
import { useEffect, useRef, useState, type KeyboardEvent } from 'react';
import { columnMaxima, LABEL, least, namedRows, roundNumber, ROW, strength, TALLEST } from './heat';
import type { Props } from './HeatMap';
import css from './HeatMap.module.css';

const GAP = 2;
const HEAD = 18;
const LINE = 14;
/** Width of the name of a column. */
const NAME = 110;

interface Cell {
  row: number;
  column: number;
}

interface DenseProps extends Props {
  width: number;
  nouns: NonNullable<Props['nouns']>;
}

export function Dense(props: DenseProps) {
  const { title, rows, columns, values, most, color, format, marked, markedColumn, onPick } = props;
  const { width, nouns } = props;
  const { log, rulers, onBrush } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const [pointed, setPointed] = useState<Cell | null>(null);
  const [focused, setFocused] = useState(false);
  const [brush, setBrush] = useState<readonly [number, number] | null>(null);
  const inner = Math.max(width - LABEL, 1);
  const height = Math.max(Math.min(rows.length * ROW, TALLEST), Math.min(rows.length, 2 * TALLEST));
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
    const [full, none] = [style.getPropertyValue(color), style.getPropertyValue('--sf-2')];
    context.fillStyle = none;
    context.fillRect(0, 0, inner, height);
    const gap = Math.min(cellWidth, cellHeight) > 6 ? GAP : 0;
    const cells = values.flatMap((line, i) =>
      line.flatMap((value, j) => (value === null ? [] : [{ i, j, share: strength(value, most, log) }])),
    );
    if (Math.min(cellWidth, cellHeight) < 1) {
      cells.sort((a, b) => a.share - b.share); // several share a pixel, which shows the largest
    }
    for (const { i, j, share } of cells) {
      const box = [
        Math.floor(j * cellWidth),
        Math.floor(i * cellHeight),
        Math.max(Math.ceil(cellWidth) - gap, 1),
        Math.max(Math.ceil(cellHeight) - gap, 1),
      ] as const;
      context.globalAlpha = 1;
      context.fillStyle = none;
      context.fillRect(...box);
      context.globalAlpha = 0.08 + 0.92 * share;
      context.fillStyle = full;
      context.fillRect(...box);
    }
  }, [values, most, log, color, inner, height, cellWidth, cellHeight]);
  const place = (event: React.MouseEvent) => {
    const box = canvas.current!.getBoundingClientRect();
    return {
      row: Math.min(Math.max(Math.floor((event.clientY - box.top) / cellHeight), 0), rows.length - 1),
      column: Math.min(Math.max(Math.floor((event.clientX - box.left) / cellWidth), 0), columns.length - 1),
    };
  };
  const across = brush && ([Math.min(...brush), Math.max(...brush)] as const);
  const onKeyDown = (event: KeyboardEvent) => {
    if (!pointed) {
      return;
    }
    const next = beside(pointed, event.key, rows.length - 1, columns.length - 1);
    if (next) {
      event.preventDefault();
      setPointed(next);
      setBrush(event.shiftKey && onBrush ? [brush?.[0] ?? pointed.column, next.column] : null);
    } else if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      if (across && across[1] > across[0]) {
        onBrush?.(...across);
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
  const every = Math.max(1, Math.ceil(LINE / cellHeight));
  const named = namedRows(rows.length, every, marked);
  return (
    <>
      {rulers && <Greatest {...{ values, columns, most, color, format, log, cellWidth }} />}
      <div className={css.dense} style={{ height }}>
        <div className={css.labels} style={{ width: LABEL }}>
          {named.map(i => (
            <span
              key={i}
              className={marked?.has(i) ? 'strong' : ''}
              style={{ top: (i + 0.5) * cellHeight - LINE / 2 }}
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
          aria-label={`${title}: the arrow keys go from cell to cell${onPick ? ', Enter opens one' : ''}${
            onBrush ? ', Shift and an arrow chooses columns' : ''
          }`}
          onFocus={() => {
            setFocused(true);
            setPointed(at => at ?? { row: [...(marked ?? [])][0] ?? 0, column: markedColumn ?? 0 });
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
                const { column } = place(event);
                setBrush([column, column]);
              }
            }}
            onPointerMove={event => {
              const at = place(event);
              setPointed(at);
              setBrush(from => from && [from[0], at.column]);
            }}
            onPointerUp={() => {
              if (across && across[1] > across[0]) {
                onBrush?.(...across);
              }
            }}
            onPointerCancel={() => setBrush(null)}
            onMouseLeave={() => !focused && setPointed(null)}
            onClick={event => {
              const at = place(event);
              if (!across || across[0] === across[1]) {
                onPick?.(at.row, at.column);
              }
              setBrush(null);
            }}
          />
        </div>
        {focused && pointed && (
          <i
            className={css.here}
            data-part="cell-here"
            style={{
              left: LABEL + pointed.column * cellWidth,
              top: pointed.row * cellHeight,
              width: Math.max(cellWidth, 3),
              height: Math.max(cellHeight, 3),
            }}
          />
        )}
        {across && across[1] > across[0] && (
          <i
            className={css.brush}
            data-part="brush"
            style={{ left: LABEL + across[0] * cellWidth, width: (across[1] - across[0] + 1) * cellWidth }}
          />
        )}
        {markedColumn !== undefined && (
          <i
            className={css.mark}
            data-part="marked-column"
            style={{ left: LABEL + markedColumn * cellWidth, width: Math.max(cellWidth, 2) }}
          />
        )}
      </div>
      {rulers && <Names {...{ columns, cellWidth, inner }} />}
      <p className={`${css.said} dim`} style={{ height: HEAD }} role="status">
        {across && across[1] > across[0]
          ? `${nouns.columns}${columns[across[0]]} to ${columns[across[1]]}`
          : pointed
            ? `${nouns.row}${rows[pointed.row]}, ${nouns.column}${columns[pointed.column]}: ${value === null ? 'not known' : format(value)}`
            : `${nouns.columns}${columns[0]} to ${columns[columns.length - 1]}, left to right${
                log ? `; palest ${format(least(most))} and less, fullest ${format(most)}, logarithmic` : ''
              }${onBrush ? '; drag across columns to see them alone' : ''}`}
      </p>
    </>
  );
}

/** The cell that a key leads to; undefined for other keys. */
function beside({ row, column }: Cell, key: string, lastRow: number, lastColumn: number): Cell | undefined {
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

type GreatestProps = Pick<Props, 'values' | 'columns' | 'most' | 'color' | 'format' | 'log'> & {
  cellWidth: number;
};

/** The greatest value of every column as a bar; the highest of them says how much it is. */
function Greatest({ values, columns, most, color, format, log, cellWidth }: GreatestProps) {
  const maxima = columnMaxima(values, columns.length);
  const highest = maxima.reduce<number>(
    (best, value, at) => ((value ?? -1) > (maxima[best] ?? -1) ? at : best),
    0,
  );
  const right = highest > columns.length / 2;
  return (
    <div className={css.greatest} style={{ marginLeft: LABEL }} data-part="column-maxima">
      {maxima.map((value, at) => (
        <i
          key={columns[at]}
          style={{
            left: at * cellWidth,
            width: Math.max(cellWidth - (cellWidth > 6 ? 2 : 0), 1),
            height: `${100 * strength(value ?? 0, most, log)}%`,
            background: `var(${color})`,
          }}
        />
      ))}
      {maxima[highest] !== null && maxima[highest] !== undefined && (
        <span
          className="num"
          style={{
            left: right ? undefined : (highest + 1) * cellWidth + 4,
            right: right ? `calc(100% - ${highest * cellWidth - 4}px)` : undefined,
          }}
        >
          {format(maxima[highest])}
        </span>
      )}
    </div>
  );
}

/** Names of columns where there is room for them. */
function Names({
  columns,
  cellWidth,
  inner,
}: {
  columns: readonly string[];
  cellWidth: number;
  inner: number;
}) {
  const every = roundNumber(NAME / cellWidth);
  const named = columns.flatMap((name, at) =>
    at % every === 0 && (at + every / 2) * cellWidth < inner ? [[name, at] as const] : [],
  );
  return (
    <div className={css.names} style={{ marginLeft: LABEL }} data-part="column-names">
      {named.map(([name, at]) => (
        <span key={name} style={{ left: at * cellWidth, maxWidth: every * cellWidth - 8 }} title={name}>
          {name}
        </span>
      ))}
    </div>
  );
}
