// Merges the timelines of several traces: ids encode the trace, times are on one clock.
import type { TracePayload } from '../../api/types';
import type { Samples, Tile } from './tile';

/** One of the traces; `shift` (ns) is added to its times. */
export interface TraceMember {
  title: string;
  shift: number;
  payload: TracePayload;
}

/** Return the merged id of an event, track, or name of member `index` of `count`. */
export const mergedId = (id: number, index: number, count: number): number =>
  id < 0 ? id : id * count + index;

export const memberOf = (id: number, count: number): { index: number; id: number } => ({
  index: id % count,
  id: Math.floor(id / count),
});

/** Return one payload with the groups and tracks of all members in order; the steps are those of the first. */
export function mergePayloads(members: readonly TraceMember[], origin: number): TracePayload {
  const first = members[0]!.payload;
  const count = members.length;
  const groups: TracePayload['groups'] = [];
  const tracks: TracePayload['tracks'] = [];
  members.forEach(({ title, payload }, index) => {
    const base = groups.length;
    groups.push(...payload.groups.map(group => ({ ...group, name: `${title} · ${group.name}` })));
    for (const track of payload.tracks) {
      if (track.kind !== 'steps' || index === 0) {
        tracks.push({
          ...track,
          id: mergedId(track.id, index, count),
          device: track.device === null ? null : mergedId(track.device, index, count),
          group: track.group === null ? null : track.group + base,
        });
      }
    }
  });
  const sum = Object.fromEntries(
    Object.keys(first.counts).map(key => [
      key,
      members.reduce((all, { payload }) => all + payload.counts[key as keyof TracePayload['counts']], 0),
    ]),
  );
  return {
    ...first,
    trace_start_ns: 0,
    base_ns: origin,
    wall_ns: first.wall_ns === null ? null : origin,
    begin_ns: Math.min(...members.map(({ payload, shift }) => payload.begin_ns + shift)),
    end_ns: Math.max(...members.map(({ payload, shift }) => payload.end_ns + shift)),
    first_begin_ns: Math.min(...members.map(({ payload, shift }) => payload.first_begin_ns + shift)),
    first_end_ns: Math.max(...members.map(({ payload, shift }) => payload.first_end_ns + shift)),
    groups,
    tracks,
    counts: sum as unknown as TracePayload['counts'],
    steps: first.steps.map(step => ({ ...step, start_ns: step.start_ns + members[0]!.shift })),
    classes: mergeClasses(members).texts,
  };
}

/** Common colors: `codes[member][code]` is the merged code; colors with the same text are one. */
export interface MergedColors {
  texts: string[];
  codes: number[][];
}

export function mergeColors(legends: readonly (readonly string[])[]): MergedColors {
  const texts = [...new Set(legends.flat())];
  const code = new Map(texts.map((text, i) => [text, i]));
  return { texts, codes: legends.map(legend => legend.map(text => code.get(text)!)) };
}

/** Keep the codes, which mean the same in every trace. */
export const unchangedColors = (members: readonly TraceMember[]): MergedColors => ({
  texts: [],
  codes: members.map(() => []),
});

const mergeClasses = (members: readonly TraceMember[]): MergedColors =>
  mergeColors(members.map(({ payload }) => payload.classes));

/** Merge the members' tiles of one window; without `recolored`, colors are those of classes. */
export function mergeTiles(
  tiles: readonly Tile[],
  members: readonly TraceMember[],
  begin: number,
  end: number,
  recolored: MergedColors = mergeClasses(members),
): Tile {
  const count = members.length;
  const size = tiles.reduce((sum, tile) => sum + tile.start.length, 0);
  const merged: Tile = {
    begin,
    end,
    unit: Math.max(...tiles.map(tile => tile.unit)),
    lanes: new Map(),
    start: new Float64Array(size),
    duration: new Float64Array(size),
    busy: new Float64Array(size),
    count: new Uint32Array(size),
    event: new Int32Array(size),
    name: new Int32Array(size),
    color: new Uint16Array(size),
    names: new Map(),
    shortNames: new Map(),
  };
  const names = merged.names as Map<number, string>;
  const shortNames = merged.shortNames as Map<number, string>;
  let at = 0;
  tiles.forEach((tile, index) => {
    const { shift } = members[index]!;
    const colors = recolored.codes[index]!;
    for (let i = 0; i < tile.start.length; i++) {
      merged.start[at + i] = tile.start[i]! + shift;
      merged.event[at + i] = mergedId(tile.event[i]!, index, count);
      merged.name[at + i] = mergedId(tile.name[i]!, index, count);
      merged.color[at + i] = colors[tile.color[i]!] ?? tile.color[i]!;
    }
    merged.duration.set(tile.duration, at);
    merged.busy.set(tile.busy, at);
    merged.count.set(tile.count, at);
    for (const [track, lanes] of tile.lanes) {
      merged.lanes.set(
        mergedId(track, index, count),
        lanes.map(lane => ({ depth: lane.depth, first: lane.first + at, last: lane.last + at })),
      );
    }
    for (const [code, text] of tile.names) {
      names.set(mergedId(code, index, count), text);
    }
    for (const [code, text] of tile.shortNames) {
      shortNames.set(mergedId(code, index, count), text);
    }
    at += tile.start.length;
  });
  return merged;
}

export function mergeSamples(
  parts: readonly Samples[],
  members: readonly TraceMember[],
  begin: number,
  end: number,
): Samples {
  const count = members.length;
  const series = new Map<number, [number, number]>();
  const columns = { start: [], low: [], high: [], mean: [], last: [] } as Record<
    'start' | 'low' | 'high' | 'mean' | 'last',
    number[]
  >;
  parts.forEach((part, index) => {
    const at = columns.start.length;
    const { shift } = members[index]!;
    for (const [track, [from, to]] of part.series) {
      series.set(mergedId(track, index, count), [from + at, to + at]);
    }
    for (let i = 0; i < part.start.length; i++) {
      columns.start.push(part.start[i]! + shift);
      for (const name of ['low', 'high', 'mean', 'last'] as const) {
        columns[name].push(part[name][i]!);
      }
    }
  });
  return {
    begin,
    end,
    series,
    start: Float64Array.from(columns.start),
    low: Float64Array.from(columns.low),
    high: Float64Array.from(columns.high),
    mean: Float64Array.from(columns.mean),
    last: Float64Array.from(columns.last),
  };
}
