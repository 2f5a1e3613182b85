// What both forms of a heat map share: their props, sizes, the strength of a color, and which names are drawn.

export interface HeatMapProps {
  title: string;
  rows: readonly string[];
  columns: readonly string[];
  /** By row, then by column; null where the value is unknown. */
  values: readonly (readonly (number | null)[])[];
  /** The value of the strongest color; maps side by side share it. */
  max: number;
  /** The name of a CSS variable. */
  color: string;
  format: (value: number) => string;
  /** What a tooltip says of a value, if that is more than its `format`. */
  describe?: (value: number) => string;
  /** Rows whose names are bold. */
  highlightedRows?: ReadonlySet<number>;
  /** The column with a frame around it. */
  highlightedColumn?: number;
  /** The words in front of the name of a row, of a column, and of a range of columns. */
  nouns?: HeatMapNouns;
  onPick?: (row: number, column: number) => void;
  /** Color by the logarithm, so that values far below `max` can be told apart. */
  log?: boolean;
  /** Draw the maximum of each column above the map and the names of columns below it. */
  rulers?: boolean;
  /** A range of columns was selected by dragging; both ends are included. */
  onBrush?: (first: number, last: number) => void;
}

export interface HeatMapNouns {
  row: string;
  column: string;
  columns: string;
}

/** Px. */
export const HEAT_ROW_HEIGHT = 28;
/** Width of the names of rows, px. */
export const LABEL_WIDTH = 66;
/** Greatest height of a map whose rows are all `ROW_HEIGHT` high, px. */
export const MAX_HEIGHT = 300;

/** Height of what a map with rulers has above and below its cells, px. */
export const RULERS_HEIGHT = 72;

/** Return the height of the cells of a map without numbers, px. */
export const denseHeight = (rows: number): number =>
  Math.max(Math.min(rows * HEAT_ROW_HEIGHT, MAX_HEIGHT), Math.min(rows, 2 * MAX_HEIGHT));

/** Powers of ten between the strongest and the lightest color of a logarithmic scale. */
const DECADES = 3;

/** Return the value at and below which a logarithmic scale shows its lightest color. */
export const logScaleMin = (max: number): number => max / 10 ** DECADES;

/** Return how strong the color of `value` is, from 0 to 1. */
export function colorStrength(value: number, max: number, log = false): number {
  if (max <= 0 || value <= 0) {
    return 0;
  }
  const share = log ? 1 + Math.log10(value / max) / DECADES : value / max;
  return Math.min(Math.max(share, 0), 1);
}

/** Return the greatest known value of each of `count` columns, or null for a column without any. */
export function columnMaxima(
  values: readonly (readonly (number | null)[])[],
  count: number,
): (number | null)[] {
  return Array.from({ length: count }, (_, column) => {
    const known = values.flatMap(row => row[column] ?? []);
    return known.length > 0 ? Math.max(...known) : null;
  });
}

/** Return the smallest of 1, 2, 5, 10, 20, ... that is at least `min`. */
export function niceInterval(min: number): number {
  const power = 10 ** Math.max(Math.floor(Math.log10(min)), 0);
  return [1, 2, 5, 10].map(factor => factor * power).find(value => value >= min)!;
}

/** Return the rows whose names are drawn: highlighted ones, and every n-th row at least `every` rows away from those. */
export function labeledRows(
  count: number,
  every: number,
  highlighted: ReadonlySet<number> = new Set(),
): number[] {
  const labeled: number[] = [];
  for (const row of [...highlighted].sort((a, b) => a - b)) {
    if (row < count && (labeled.length === 0 || row - labeled[labeled.length - 1]! >= every)) {
      labeled.push(row);
    }
  }
  const first = [...labeled];
  for (let row = 0; row < count; row += every) {
    if (first.every(other => Math.abs(other - row) >= every)) {
      labeled.push(row);
    }
  }
  return labeled.sort((a, b) => a - b);
}
