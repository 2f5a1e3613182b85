// A map of values by row and column: numbers in the cells where they fit, only colors where they don't.
import { useComputedColorScheme } from '@mantine/core';
import { Button } from '../inputs/Button';
import { useStepWords } from '../../state/steps';
import { DenseMap } from './DenseMap';
import { colorStrength, LABEL_WIDTH, MAX_HEIGHT, HEAT_ROW_HEIGHT, type HeatMapProps } from './heat';
import { useWidth } from './useWidth';
import css from './HeatMap.module.css';

/** Width of the narrowest cell that holds a number, px. */
const MIN_CELL_WIDTH = 58;

export function HeatMap(props: HeatMapProps) {
  const { title, rows, columns, values, max, color, format, highlightedRows, highlightedColumn, onPick } =
    props;
  const say = useStepWords();
  const nouns = props.nouns ?? { row: '', column: say('step '), columns: say('steps ') };
  const { ref, width } = useWidth();
  const theme = useComputedColorScheme('light');
  const inner = width - LABEL_WIDTH;
  if (columns.length === 0) {
    return (
      <p className="dim" role="figure" aria-label={title}>
        No values to show.
      </p>
    );
  }
  const numbersFit = rows.length * HEAT_ROW_HEIGHT <= MAX_HEIGHT && inner / columns.length >= MIN_CELL_WIDTH;
  return (
    <div ref={ref} className={css.map} role="figure" aria-label={title}>
      {width > 0 &&
        (numbersFit ? (
          <div
            className={css.cells}
            style={{ gridTemplateColumns: `${LABEL_WIDTH}px repeat(${columns.length}, minmax(0, 1fr))` }}
          >
            <span />
            {columns.map((column, i) => (
              <span key={column} className={`${css.column} ${i === highlightedColumn ? 'strong' : ''}`}>
                {nouns.column}
                {column}
              </span>
            ))}
            {rows.map((row, i) => (
              <Row
                key={row}
                name={`${nouns.row}${row}`}
                noun={nouns.column}
                highlighted={highlightedRows?.has(i) ?? false}
                values={values[i] ?? []}
                columns={columns}
                max={max}
                color={color}
                format={format}
                describe={props.describe ?? format}
                onPick={onPick && (column => onPick(i, column))}
              />
            ))}
          </div>
        ) : (
          <DenseMap key={theme} {...{ ...props, nouns, width }} />
        ))}
    </div>
  );
}

interface RowProps {
  name: string;
  noun: string;
  highlighted: boolean;
  values: readonly (number | null)[];
  columns: readonly string[];
  max: number;
  color: string;
  format: (value: number) => string;
  describe: (value: number) => string;
  onPick?: (column: number) => void;
}

function Row({ name, noun, highlighted, values, columns, max, color, format, describe, onPick }: RowProps) {
  return (
    <>
      <span className={`${css.row} clip ${highlighted ? 'strong' : ''}`} title={name}>
        {name}
      </span>
      {columns.map((column, i) => {
        const value = values[i] ?? null;
        const strength = value === null ? 0 : colorStrength(value, max);
        return (
          <Button
            look="bare"
            key={column}
            className={css.cell}
            style={{ background: value === null ? undefined : cellColor(color, strength) }}
            title={`${name}, ${noun}${column}: ${value === null ? 'unknown' : describe(value)}`}
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

/** Return the background of a cell, never so dark that the number on it is unreadable. */
const cellColor = (color: string, strength: number): string =>
  `color-mix(in oklab, var(${color}) ${Math.round(8 + 60 * strength)}%, var(--sf-2))`;
