// Columns of tables: values in base units, their text on the page, and their cells in CSV.
import type { ReactNode } from 'react';
import { saveFile, toCsv, type CsvCell } from '../../base/browser/save';
import {
  durationParts,
  exactDuration,
  formatBytes,
  formatCount,
  formatNumber,
  formatRatio,
  plural,
  rateParts,
} from '../../base/format';
import { plainText, type Phrase } from '../../base/text';
import type { TermId } from '../../base/glossary';
import { Name } from '../Name';
import css from './Table.module.css';

/** Height of a row, px. */
export const TABLE_ROW_HEIGHT = 28;

type CellValue = string | number | boolean | null | undefined;

type ColumnKind = 'text' | 'code' | 'count' | 'number' | 'duration' | 'bytes' | 'ratio' | 'rate' | 'flag';

type MissingReason = string | readonly Phrase[];

export interface Column<R> {
  /** The name of the column in the address, in CSV, and in the settings. */
  id: string;
  title: string;
  kind: ColumnKind;
  value: (row: R) => CellValue;
  /** The name that `render` draws, where it isn't the value. */
  shownName?: (row: R) => string;
  term?: TermId;
  /** A bar behind the value that shows its share of `of`; with `percent`, also as a number. */
  bar?: { of: number; color: string; percent?: boolean };
  /** Draws the cell instead of the formatted value. */
  render?: (row: R) => ReactNode;
  /** Why the value is missing where it is null. */
  reason?: MissingReason | ((row: R) => MissingReason | undefined);
  width?: number;
  /** Whether the column takes leftover width; by default names do, and bars half as much. */
  grow?: boolean;
  /** Hidden until it is turned on in the column menu. */
  hidden?: boolean;
}

export const isText = (kind: ColumnKind): boolean => kind === 'text' || kind === 'code';

const DEFAULT_WIDTH: Record<ColumnKind, number> = {
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

/** What else a cell holds takes beside its value or title, px. */
const TERM_WIDTH = 20;
const BAR_WIDTH = 20;
const BAR_WITH_PERCENT_WIDTH = 64;

function columnWidth<R>(column: Column<R>): number {
  const bar = column.bar ? (column.bar.percent ? BAR_WITH_PERCENT_WIDTH : BAR_WIDTH) : 0;
  return column.width ?? DEFAULT_WIDTH[column.kind] + (column.term ? TERM_WIDTH : 0) + bar;
}

/** The padding of a row on both sides, and the gap after each column, px: as in the stylesheet. */
const ROW_PADDING = 32;
const COLUMN_GAP = 12;

/** Most of a narrow table that its first column takes, as the others are scrolled beside it. */
const FIRST_COLUMN = '55cqw';

/** Return the CSS grid of `columns` and its smallest width. */
export function gridLayout<R>(columns: Column<R>[]): { gridTemplateColumns: string; minWidth: string } {
  const widths = columns.map((column, i) => ({
    min: i === 0 ? `min(${columnWidth(column)}px, ${FIRST_COLUMN})` : `${columnWidth(column)}px`,
    grows: column.grow ?? (isText(column.kind) || column.bar !== undefined),
    share: isText(column.kind) ? 2 : 1,
  }));
  return {
    gridTemplateColumns: widths
      .map(({ min, grows, share }) => (grows ? `minmax(${min}, ${share}fr)` : min))
      .join(' '),
    minWidth: `calc(${[`${ROW_PADDING + COLUMN_GAP * columns.length}px`, ...widths.map(({ min }) => min)].join(' + ')})`,
  };
}

/** Return a value as a CSV cell: in base units, flags as 1 and 0. */
const csvCell = (value: unknown): CsvCell =>
  typeof value === 'boolean'
    ? Number(value)
    : typeof value === 'string' || typeof value === 'number'
      ? value
      : null;

/** Return the names that the text columns of these rows show. */
export function namesOf<R>(columns: readonly Column<R>[], rows: readonly R[]): string[] {
  const texts = columns.filter(column => isText(column.kind)).map(column => column.shownName ?? column.value);
  return rows.flatMap(row => texts.map(text => text(row)).filter(text => typeof text === 'string'));
}

/** Save the rows of a table as `name`.csv. */
export function saveCsv<R>(name: string, columns: readonly Column<R>[], rows: readonly R[]): void {
  const cells = rows.map(row => columns.map(column => csvCell(column.value(row))));
  const ids = columns.map(column => column.id);
  saveFile(`${name}.csv`, toCsv(ids, cells), 'text/csv');
}

/** Return the text of a value; `exact` is for the tooltip. */
function formatCell(kind: ColumnKind, value: CellValue): { text: string; unit?: string; exact?: string } {
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
    case 'rate': {
      const { value: text, unit } = rateParts(value);
      return { text, unit, exact: plural(value, 'byte per second', 'bytes per second') };
    }
    case 'count':
      return { text: formatCount(value) };
    default:
      return { text: formatNumber(value), exact: String(value) };
  }
}

const DEFAULT_REASON = [{ text: 'Not recorded in this trace.' }];

/** The content of a cell; a missing value is a dash whose tooltip gives the reason. */
export function CellContent<R>({ column, row }: { column: Column<R>; row: R }) {
  const value = column.value(row);
  if (value === null || value === undefined) {
    const reason = typeof column.reason === 'function' ? column.reason(row) : column.reason;
    return (
      <span className="dim" title={typeof reason === 'string' ? reason : plainText(reason ?? DEFAULT_REASON)}>
        –
      </span>
    );
  }
  if (column.render) {
    return column.render(row);
  }
  const { text, unit, exact } = formatCell(column.kind, value);
  if (isText(column.kind)) {
    return <Name text={text} title={exact} />;
  }
  const share = column.bar && typeof value === 'number' && column.bar.of > 0 ? value / column.bar.of : null;
  return (
    <span className={css.value} title={exact}>
      {share !== null && (
        <i
          className={css.bar}
          style={{ width: `${Math.min(Math.max(share, 0), 1) * 100}%`, background: column.bar!.color }}
        />
      )}
      <span className={css.aboveBar}>
        {text}
        {unit && <span className="unit"> {unit}</span>}
      </span>
      {share !== null && column.bar!.percent && (
        <span className={`${css.percent} ${css.aboveBar}`}>{formatRatio(share)}</span>
      )}
    </span>
  );
}
