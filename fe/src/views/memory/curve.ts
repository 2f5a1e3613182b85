// The curve as SVG paths: upright steps, no peak lost between pixels.
import { bisectRight } from 'd3-array';
import { area, curveStepAfter, line, stack } from 'd3-shape';
import type { MemoryCurve } from '../../api/types';
import { decodeFloats } from '../../base/base64';
import { byteUnit } from '../../base/format';
import { roundTickValues } from '../../base/ticks';

export interface DecodedCurve {
  begin: number;
  end: number;
  time: Float64Array;
  allocated: SampledBytes;
  /** Empty columns where the file records no totals. */
  reserved: SampledBytes;
}

export interface SampledBytes {
  min: Float64Array;
  max: Float64Array;
  last: Float64Array;
}

export function decode(curve: MemoryCurve): DecodedCurve {
  return {
    begin: curve.begin_ns,
    end: curve.end_ns,
    time: decodeFloats(curve.time),
    allocated: {
      min: decodeFloats(curve.allocated_min),
      max: decodeFloats(curve.allocated_max),
      last: decodeFloats(curve.allocated_last),
    },
    reserved: {
      min: decodeFloats(curve.reserved_min),
      max: decodeFloats(curve.reserved_max),
      last: decodeFloats(curve.reserved_last),
    },
  };
}

type Scale = (value: number) => number;
type Point = [time: number, bytes: number];

const steps = line<Point>().curve(curveStepAfter).digits(1);

/** A line through a band: up to its greatest, down to its least, on from its last value; empty without any. */
export function outline({ time, end }: DecodedCurve, band: SampledBytes, x: Scale, y: Scale): string {
  const points: Point[] = [];
  band.last.forEach((last, i) => {
    const [at, min, max] = [time[i]!, band.min[i]!, band.max[i]!];
    if (Number.isNaN(last)) {
      return;
    }
    if (min !== max) {
      points.push([at, max], [at, min]);
    }
    points.push([at, last]);
  });
  const final = points.at(-1);
  return final ? steps.x(([at]) => x(at)).y(point => y(point[1]))([...points, [end, final[1]]])! : '';
}

/** Return what lies below a band. */
export function surface({ time, end }: DecodedCurve, band: SampledBytes, x: Scale, y: Scale): string {
  const points = Array.from(band.max, (max, i): Point => [time[i]!, max]).filter(
    ([, max]) => !Number.isNaN(max),
  );
  const final = points.at(-1);
  const below = area<Point>(
    ([at]) => x(at),
    y(0),
    point => y(point[1]),
  )
    .curve(curveStepAfter)
    .digits(1);
  return final ? below([...points, [end, final[1]]])! : '';
}

/** One area per column of sizes, each upon those before it. */
export function stacked(
  time: Float64Array,
  sizes: Float64Array[],
  end: number,
  x: Scale,
  y: Scale,
): string[] {
  const columns = sizes.map((_, i) => i);
  const layers = stack<number, number>()
    .keys(columns)
    .value((row, column) => sizes[column]![row]!)([...time.keys()]);
  return layers.map(layer => {
    const [final] = layer.slice(-1);
    const shape = area<ArrayLike<number>>(
      (_, i) => x(time[i] ?? end),
      layer => y(layer[0]!),
      layer => y(layer[1]!),
    );
    return final ? shape.curve(curveStepAfter).digits(1)([...layer, final])! : '';
  });
}

/** What holds at a time; NaN before the first event. */
export const valueAt = ({ time }: DecodedCurve, band: SampledBytes, at: number): number =>
  band.last[bisectRight(time, at, 0, band.last.length) - 1] ?? NaN;

/** Greatest and least of all that is drawn, 0 included. */
export function bounds(curve: DecodedCurve): { low: number; high: number } {
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

/** Values for an axis of bytes that are round in its unit. */
export const byteTicks = (low: number, high: number, count: number): number[] =>
  roundTickValues(low, high, count, byteUnit(Math.max(high, -low)));
