// A map of values by row and column: numbers in the cells where there is room, color alone where there is not.
import { useComputedColorScheme } from '@mantine/core';
import { useWidth } from './useWidth';
import { Button } from '../inputs/Button';
import { Dense } from './DenseMap';
import { ROW, strength, TALLEST, LABEL } from './heat';
import css from './HeatMap.module.css';

export interface Props {
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
  /** Colors by the logarithm, so that what is far below the greatest is told apart, too. */
  log?: boolean;
  /** The greatest of every column above the map, and names of columns below it. */
  rulers?: boolean;
  /** A drag across columns, from the first to the last of them. */
  onBrush?: (first: number, last: number) => void;
}

const RANKS_BY_STEP = { row: '', column: 'step ', columns: 'steps ' };

/** Narrowest cell that holds a number. */
const ROOM = 58;

export function HeatMap(props: Props) {
  const { title, rows, columns, values, most, color, format, marked, markedColumn, onPick } = props;
  const nouns = props.nouns ?? RANKS_BY_STEP;
  const { ref, width } = useWidth();
  const theme = useComputedColorScheme('light');
  const inner = width - LABEL;
  if (columns.length === 0) {
    return (
      <p className="dim" role="figure" aria-label={title}>
        No values are known.
      </p>
    );
  }
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

/** Never so dark that the number on it could not be read. */
const tint = (color: string, share: number): string =>
  `color-mix(in oklab, var(${color}) ${Math.round(8 + 60 * share)}%, var(--sf-2))`;
