// A map of values by row and column: numbers in the cells where there is room, color alone where there is not.
import { useComputedColorScheme } from '@mantine/core';
import { useEffect, useRef, useState } from 'react';
import { useWidth } from './useWidth';
import { Button } from '../inputs/Button';
import css from './HeatMap.module.css';

interface Props {
  title: string;
  rows: readonly string[];
  columns: readonly string[];
  /** By row, by column; null: not known. */
  values: readonly (readonly (number | null)[])[];
  /** What the darkest color stands for: maps side by side share it. */
  most: number;
  /** A CSS variable. */
  color: string;
  format: (value: number) => string;
  /** Rows that are spoken of. */
  marked?: ReadonlySet<number>;
  /** A column that is spoken of. */
  markedColumn?: number;
  /** What a row and a column are called before their names, and columns together. */
  nouns?: { row: string; column: string; columns: string };
  onPick?: (row: number, column: number) => void;
}

const RANKS_BY_STEP = { row: '', column: 'step ', columns: 'steps ' };

const ROW = 28;
const GAP = 2;
const LABEL = 66;
const HEAD = 18;
const LINE = 14;
const TALLEST = 300;
/** Narrowest cell that holds a number. */
const ROOM = 58;

export function HeatMap(props: Props) {
  const { title, rows, columns, values, most, color, format, marked, markedColumn, onPick } = props;
  const nouns = props.nouns ?? RANKS_BY_STEP;
  const { ref, width } = useWidth();
  const theme = useComputedColorScheme('light');
  const inner = width - LABEL;
  const roomy = rows.length * ROW <= TALLEST && columns.length > 0 && inner / columns.length >= ROOM;
  return (
    <div ref={ref} className={css.map} role="figure" aria-label={title}>
      {width > 0 &&
        (roomy ? (
          <div
            className={css.cells}
            style={{ gridTemplateColumns: `${LABEL}px repeat(${columns.length}, minmax(0, 1fr))` }}
          >
            <span />
            {columns.map((column, i) => (
              <span key={column} className={`${css.column} ${i === markedColumn ? 'strong' : ''}`}>
                {nouns.column}
                {column}
              </span>
            ))}
            {rows.map((row, i) => (
              <Row
                key={row}
                name={`${nouns.row}${row}`}
                noun={nouns.column}
                marked={marked?.has(i) ?? false}
                values={values[i] ?? []}
                columns={columns}
                most={most}
                color={color}
                format={format}
                onPick={onPick && (column => onPick(i, column))}
              />
            ))}
          </div>
        ) : (
          <Dense key={theme} {...{ ...props, nouns, width }} />
        ))}
    </div>
  );
}

interface RowProps {
  name: string;
  noun: string;
  marked: boolean;
  values: readonly (number | null)[];
  columns: readonly string[];
  most: number;
  color: string;
  format: (value: number) => string;
  onPick?: (column: number) => void;
}

function Row({ name, noun, marked, values, columns, most, color, format, onPick }: RowProps) {
  return (
    <>
      <span className={`${css.row} clip ${marked ? 'strong' : ''}`} title={name}>
        {name}
      </span>
      {columns.map((column, i) => {
        const value = values[i] ?? null;
        const share = value === null ? 0 : strength(value, most);
        return (
          <Button
            look="bare"
            key={column}
            className={css.cell}
            style={{ background: value === null ? undefined : tint(color, share) }}
            title={`${name}, ${noun}${column}: ${value === null ? 'not known' : format(value)}`}
            disabled={!onPick}
            onClick={() => onPick?.(i)}
          >
            {value === null ? '–' : format(value)}
          </Button>
        );
      })}
    </>
  );
}

const strength = (value: number, most: number): number =>
  most > 0 ? Math.min(Math.max(value / most, 0), 1) : 0;

/** Never so dark that the number on it could not be read. */
const tint = (color: string, share: number): string =>
  `color-mix(in oklab, var(${color}) ${Math.round(8 + 60 * share)}%, var(--sf-2))`;

/** Rows with room for their name beside the map: the marked ones, and every n-th that keeps clear of those. */
export function namedRows(count: number, every: number, marked: ReadonlySet<number> = new Set()): number[] {
  const named: number[] = [];
  for (const row of [...marked].sort((a, b) => a - b)) {
    if (row < count && (named.length === 0 || row - named[named.length - 1]! >= every)) {
      named.push(row);
    }
  }
  const first = [...named];
  for (let row = 0; row < count; row += every) {
    if (first.every(other => Math.abs(other - row) >= every)) {
      named.push(row);
    }
  }
  return named.sort((a, b) => a - b);
}

interface DenseProps extends Omit<Props, 'title'> {
  width: number;
  nouns: NonNullable<Props['nouns']>;
}

function Dense(props: DenseProps) {
  const { rows, columns, values, most, color, format, marked, markedColumn, onPick, width, nouns } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const [pointed, setPointed] = useState<{ row: number; column: number } | null>(null);
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
      line.flatMap((value, j) => (value === null ? [] : [{ i, j, share: strength(value, most) }])),
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
  }, [values, most, color, inner, height, cellWidth, cellHeight]);
  const place = (event: React.MouseEvent) => {
    const box = canvas.current!.getBoundingClientRect();
    return {
      row: Math.min(Math.max(Math.floor((event.clientY - box.top) / cellHeight), 0), rows.length - 1),
      column: Math.min(Math.max(Math.floor((event.clientX - box.left) / cellWidth), 0), columns.length - 1),
    };
  };
  const value = pointed ? (values[pointed.row]?.[pointed.column] ?? null) : null;
  const every = Math.max(1, Math.ceil(LINE / cellHeight));
  const named = namedRows(rows.length, every, marked);
  return (
    <>
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
        {/* oxlint-disable-next-line jsx-a11y/click-events-have-key-events, jsx-a11y/no-static-element-interactions -- the tables have the keys */}
        <canvas
          ref={canvas}
          style={{ width: inner, height }}
          onMouseMove={event => setPointed(place(event))}
          onMouseLeave={() => setPointed(null)}
          onClick={event => {
            const at = place(event);
            onPick?.(at.row, at.column);
          }}
        />
        {markedColumn !== undefined && (
          <i
            className={css.mark}
            data-part="marked-column"
            style={{ left: LABEL + markedColumn * cellWidth, width: Math.max(cellWidth, 2) }}
          />
        )}
      </div>
      <p className={`${css.said} dim`} style={{ height: HEAD }}>
        {pointed
          ? `${nouns.row}${rows[pointed.row]}, ${nouns.column}${columns[pointed.column]}: ${value === null ? 'not known' : format(value)}`
          : `${nouns.columns}${columns[0]} to ${columns[columns.length - 1]}, left to right`}
      </p>
    </>
  );
}
