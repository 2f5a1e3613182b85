// A tile of the timeline as typed arrays: boxes by track and lane, times in ns since the trace's start.
import type { TraceCounters, TraceTile } from '../../api/types';
import { decodeBytes } from '../../base/base64';

/** Boxes first..last of the columns, ordered by start: one depth of one track. */
export interface Lane {
  depth: number;
  first: number;
  last: number;
}

export interface Tile {
  begin: number;
  end: number;
  /** Rounding unit of the times, ns. */
  unit: number;
  lanes: Map<number, Lane[]>;
  start: Float64Array;
  duration: Float64Array;
  busy: Float64Array;
  count: Uint32Array;
  event: Int32Array;
  name: Int32Array;
  color: Uint16Array;
  /** Names of the boxes that hold a single slice, by code. */
  names: ReadonlyMap<number, string>;
  /** Short names of kernels, by code. */
  shortNames: ReadonlyMap<number, string>;
}

export interface Samples {
  begin: number;
  end: number;
  /** Track -> first and last entry of the columns. */
  series: Map<number, [number, number]>;
  start: Float64Array;
  low: Float64Array;
  high: Float64Array;
  mean: Float64Array;
  last: Float64Array;
}

function times(column: string, unit: number, origin: number): Float64Array {
  const raw = new Int32Array(decodeBytes(column));
  const ns = new Float64Array(raw.length);
  for (let i = 0; i < raw.length; i++) {
    ns[i] = raw[i]! * unit + origin;
  }
  return ns;
}

const byCode = (texts: Record<string, string>) =>
  new Map(Object.entries(texts).map(([code, text]) => [Number(code), text]));

export function decodeTile(wire: TraceTile): Tile {
  const lanes = new Map<number, Lane[]>();
  wire.lane_track.forEach((track, i) => {
    const lane = { depth: wire.lane_depth[i]!, first: wire.lane_first[i]!, last: wire.lane_first[i + 1]! };
    const known = lanes.get(track);
    if (known) {
      known.push(lane);
    } else {
      lanes.set(track, [lane]);
    }
  });
  return {
    begin: wire.begin_ns,
    end: wire.end_ns,
    unit: wire.unit_ns,
    lanes,
    start: times(wire.start, wire.unit_ns, wire.begin_ns),
    duration: times(wire.duration, wire.unit_ns, 0),
    busy: times(wire.busy, wire.unit_ns, 0),
    count: new Uint32Array(decodeBytes(wire.count)),
    event: new Int32Array(decodeBytes(wire.event)),
    name: new Int32Array(decodeBytes(wire.name)),
    color: new Uint16Array(decodeBytes(wire.color)),
    names: byCode(wire.names),
    shortNames: byCode(wire.short_names),
  };
}

export function decodeSamples(wire: TraceCounters): Samples {
  return {
    begin: wire.begin_ns,
    end: wire.end_ns,
    series: new Map(
      wire.series_track.map((track, i) => [track, [wire.series_first[i]!, wire.series_first[i + 1]!]]),
    ),
    start: times(wire.start, wire.unit_ns, wire.begin_ns),
    low: new Float64Array(decodeBytes(wire.low)),
    high: new Float64Array(decodeBytes(wire.high)),
    mean: new Float64Array(decodeBytes(wire.mean)),
    last: new Float64Array(decodeBytes(wire.last)),
  };
}

/** Return the first entry of from..to that starts at or after `time`; `to` if none does. */
export function lowerBound(starts: Float64Array, from: number, to: number, time: number): number {
  let low = from;
  let high = to;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (starts[middle]! < time) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}
