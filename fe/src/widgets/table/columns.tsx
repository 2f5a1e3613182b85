// What a column of a table shows: its value in base units, how people read it, what CSV gets.
import type { ReactNode } from 'react';
import {
  durationParts,
  exactDuration,
  formatBytes,
  formatCount,
  formatNumber,
  formatRatio,
  plural,
} from '../../base/format';
import { plain, type Phrase } from '../../base/text';
import type { TermId } from '../../base/glossary';
import css from './Table.module.css';

/** Height of a row, px. */
export const ROW = 28;

export type Cell = string | number | boolean | null | undefined;

export type Kind = 'text' | 'code' | 'count' | 'number' | 'duration' | 'bytes' | 'ratio' | 'rate' | 'flag';

type Reason = string | readonly Phrase[];

export interface Column<R> {
  /** Names the column in the address, in the CSV and among the hidden ones. */
  id: string;
  title: string;
  kind: Kind;
  value: (row: R) => Cell;
  term?: TermId;
  /** A bar behind the value, its share of `of`, and with `percent` the share as a number. */
  bar?: { of: number; color: string; percent?: boolean };
  /** What stands in the cell instead of the formatted value. */
  render?: (row: R) => ReactNode;
  /** Why a null is not known. */
  reason?: Reason | ((row: R) => Reason | undefined);
  width?: number;
  /** Takes what room is left; text columns do. */
  grow?: boolean;
  /** Off until it is switched on in the menu of columns. */
  hidden?: boolean;
}

export const isText = (kind: Kind): boolean => kind === 'text' || kind === 'code';

const WIDTH: Record<Kind, number> = {
  text: 200,
  code: 200,
  count: 64,
  number: 80,
  duration: 84,
  bytes: 88,
  ratio: 68,
  rate: 104,
  flag: 64,
};

export function columnWidth<R>(column: Column<R>): number {
  return (
    column.width ??
    WIDTH[column.kind] + (column.term ? 20 : 0) + (column.bar ? (column.bar.percent ? 64 : 20) : 0)
  );
}

/** The grid that columns make, and how narrow it may become. */
export function gridOf<R>(columns: Column<R>[]): { gridTemplateColumns: string; minWidth: number } {
  const widths = columns.map(column => ({
    least: columnWidth(column),
    grows: column.grow ?? isText(column.kind),
  }));
  return {
    gridTemplateColumns: widths
      .map(({ least, grows }) => (grows ? `minmax(${least}px, 1fr)` : `${least}px`))
      .join(' '),
    minWidth: widths.reduce((sum, { least }) => sum + least + 12, 32),
  };
}

/** A value as CSV has it: base units, flags as 1 and 0. */
export const csvCell = (value: unknown): string | number | null =>
  typeof value === 'boolean'
    ? Number(value)
    : typeof value === 'string' || typeof value === 'number'
      ? value
      : null;

/** The value as people read it; `exact` is what a hover says. */
export function formatCell(kind: Kind, value: Cell): { text: string; unit?: string; exact?: string } {
  if (value === null || value === undefined) {
    return { text: '–' };
  }
  if (typeof value === 'boolean') {
    return { text: value ? 'Yes' : 'No' };
  }
  if (typeof value === 'string') {
    return { text: value, exact: value };
  }
  switch (kind) {
    case 'duration': {
      const { value: text, unit } = durationParts(value);
      return { text, unit, exact: exactDuration(value) };
    }
    case 'bytes':
      return { text: formatBytes(value), exact: plural(value, 'byte') };
    case 'ratio':
      return { text: formatRatio(value), exact: String(value) };
    case 'rate':
      return {
        text: formatNumber(value / 1e9),
        unit: 'GB/s',
        exact: plural(value, 'byte per second', 'bytes per second'),
      };
    case 'count':
      return { text: formatCount(value) };
    default:
      return { text: formatNumber(value), exact: String(value) };
  }
}

const UNSAID = [{ text: 'The trace does not say.' }];

export function CellContent<R>({ column, row }: { column: Column<R>; row: R }) {
  const value = column.value(row);
  if (value === null || value === undefined) {
    const reason = typeof column.reason === 'function' ? column.reason(row) : column.reason;
    return (
      <span className="dim" title={typeof reason === 'string' ? reason : plain(reason ?? UNSAID)}>
        –
      </span>
    );
  }
  if (column.render) {
    return column.render(row);
  }
  const { text, unit, exact } = formatCell(column.kind, value);
  const share = column.bar && typeof value === 'number' && column.bar.of > 0 ? value / column.bar.of : null;
  return (
    <span className={isText(column.kind) ? 'clip' : css.value} title={exact}>
      {share !== null && (
        <i
          className={css.bar}
          style={{ width: `${Math.min(Math.max(share, 0), 1) * 100}%`, background: column.bar!.color }}
        />
      )}
      <span className={css.over}>
        {text}
        {unit && <span className="unit"> {unit}</span>}
      </span>
      {share !== null && column.bar!.percent && (
        <span className={`${css.percent} ${css.over}`}>{formatRatio(share)}</span>
      )}
    </span>
  );
}
