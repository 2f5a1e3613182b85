// What the roofline draws: its points, its ceilings, and how a row is named in the address.
import type { RooflinePayload, RooflineRow } from '../../api/types';

export function rooflineKey(row: RooflineRow): string {
  return row.input_shape === null ? row.name : `${row.name} | ${row.input_shape}`;
}

interface Point {
  row: RooflineRow;
  /** FLOPs for each byte. */
  x: number;
  /** FLOP/s. */
  y: number;
}

/** Rows that compute and move, by what they do of each; smaller ones last, so that they are drawn on top. */
export function pointsOf(rows: readonly RooflineRow[]): Point[] {
  return rows.flatMap(row => {
    const { intensity: x, flops_per_s: y } = row;
    return x !== null && y !== null && x > 0 && y > 0 ? [{ row, x, y }] : [];
  });
}

/** Return the rows with no known FLOPs, placed by bandwidth. */
export function movesOf(rows: readonly RooflineRow[]): RooflineRow[] {
  return rows.filter(row => row.bytes_per_s !== null && row.bytes_per_s > 0 && row.intensity === null);
}

interface Ceiling {
  title: string;
  flops: number;
}

/** Peaks of the first device of the types that the rows use; the highest first. */
export function ceilingsOf(payload: RooflinePayload): Ceiling[] {
  const device = payload.devices[0];
  if (!device) {
    return [];
  }
  const found = new Map<string, number>();
  for (const { unit, type } of payload.rows) {
    const matrix = unit === 'matrix' && type !== null ? device.matrix[type] : undefined;
    const vector = type === null ? undefined : device.vector[type];
    if (matrix !== undefined) {
      found.set(`${type} matrix`, matrix);
    } else if (vector !== undefined) {
      found.set(`${type} vector`, vector);
    }
  }
  return [...found].map(([title, flops]) => ({ title, flops })).toSorted((a, b) => b.flops - a.flops);
}

/** Powers of ten that hold all values, at least three decades. */
export function decades(values: readonly number[]): [number, number] {
  const low = Math.floor(Math.log10(Math.min(...values)));
  const high = Math.ceil(Math.log10(Math.max(...values)));
  return [10 ** low, 10 ** Math.max(high, low + 3)];
}
