// The curve as SVG paths: upright steps, no peak lost between pixels.
import type { MemoryCurve } from '../../api/types';
import { floatsOf } from '../../base/base64';

export interface Curve {
  begin: number;
  end: number;
  time: Float64Array;
  allocated: Band;
  /** Empty columns where the file records no totals. */
  reserved: Band;
}

export interface Band {
  min: Float64Array;
  max: Float64Array;
  last: Float64Array;
}

export function decode(curve: MemoryCurve): Curve {
  return {
    begin: curve.begin_ns,
    end: curve.end_ns,
    time: floatsOf(curve.time),
    allocated: {
      min: floatsOf(curve.allocated_min),
      max: floatsOf(curve.allocated_max),
      last: floatsOf(curve.allocated_last),
    },
    reserved: {
      min: floatsOf(curve.reserved_min),
      max: floatsOf(curve.reserved_max),
      last: floatsOf(curve.reserved_last),
    },
  };
}

type Scale = (value: number) => number;

const round = (value: number): string => value.toFixed(1);

/** A line through a band: up to its greatest, down to its least, on from its last value. */
export function line({ time, end }: Curve, band: Band, x: Scale, y: Scale): string {
  let path = '';
  for (let i = 0; i < band.last.length; i++) {
    const [min, max, last] = [band.min[i]!, band.max[i]!, band.last[i]!];
    if (Number.isNaN(last)) {
      continue;
    }
    const at = round(x(time[i]!));
    path += path === '' ? `M${at},${round(y(last))}` : `H${at}`;
    path += min === max ? `V${round(y(last))}` : `V${round(y(max))}V${round(y(min))}V${round(y(last))}`;
  }
  return path === '' ? '' : `${path}H${round(x(end))}`;
}

/** What lies below a band. */
export function area({ time, end }: Curve, band: Band, x: Scale, y: Scale): string {
  let path = '';
  for (let i = 0; i < band.max.length; i++) {
    const max = band.max[i]!;
    if (!Number.isNaN(max)) {
      const at = round(x(time[i]!));
      path += path === '' ? `M${at},${round(y(0))}V${round(y(max))}` : `H${at}V${round(y(max))}`;
    }
  }
  return path === '' ? '' : `${path}H${round(x(end))}V${round(y(0))}Z`;
}

/** What holds at a time; NaN before the first event. */
export function valueAt({ time }: Curve, band: Band, at: number): number {
  let low = 0;
  let high = band.last.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (time[middle]! <= at) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return band.last[low - 1] ?? NaN;
}

/** Greatest and least of all that is drawn, 0 included. */
export function bounds(curve: Curve): { low: number; high: number } {
  let [low, high] = [0, 0];
  for (const band of [curve.allocated, curve.reserved]) {
    for (let i = 0; i < band.max.length; i++) {
      if (!Number.isNaN(band.max[i]!)) {
        high = Math.max(high, band.max[i]!);
        low = Math.min(low, band.min[i]!);
      }
    }
  }
  return { low, high };
}

/** Powers of two for an axis of bytes, at most about `most` of them. */
export function byteTicks(low: number, high: number, most: number): number[] {
  const step = 2 ** Math.max(Math.ceil(Math.log2((high - low) / most)), 0);
  const ticks = [];
  for (let i = Math.ceil(low / step); i * step <= high; i++) {
    ticks.push(i * step);
  }
  return ticks;
}
