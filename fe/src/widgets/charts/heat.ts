// What the two forms of a heat map share: measures, how strong a color is, which names have room.

export const ROW = 28;
export const LABEL = 66;
export const TALLEST = 300;

/** So many times below the greatest, the palest color of a logarithmic scale is reached. */
const DECADES = 3;

/** The least value that a logarithmic scale tells from nothing. */
export const least = (most: number): number => most / 10 ** DECADES;

/** 0 to 1: how strong the color of a value is. */
export function strength(value: number, most: number, log = false): number {
  if (most <= 0 || value <= 0) {
    return 0;
  }
  const share = log ? 1 + Math.log10(value / most) / DECADES : value / most;
  return Math.min(Math.max(share, 0), 1);
}

/** The greatest known value of each of `count` columns, null without any. */
export function columnMaxima(
  values: readonly (readonly (number | null)[])[],
  count: number,
): (number | null)[] {
  return Array.from({ length: count }, (_, column) => {
    const known = values.flatMap(row => row[column] ?? []);
    return known.length > 0 ? Math.max(...known) : null;
  });
}

/** The least of 1, 2, 5, 10, 20, ... that is not below `atLeast`. */
export function roundNumber(atLeast: number): number {
  const power = 10 ** Math.max(Math.floor(Math.log10(atLeast)), 0);
  return [1, 2, 5, 10].map(each => each * power).find(each => each >= atLeast)!;
}

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
