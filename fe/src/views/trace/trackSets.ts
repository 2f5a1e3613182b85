// Which tracks are hidden initially, which the selection sums up, and which the overview strip shows.
import type { TracePayload } from '../../api/types';
import { memberOf } from '../../timeline/tiles/merge';
import type { SummedKind } from './state';

type Track = TracePayload['tracks'][number];

/** Most tracks in the overview strip of one trace. */
const MAP_TRACKS = 4;

/** Return the tracks of processes and devices, without the profiler's own. */
const workTracks = (payload: TracePayload): TracePayload['tracks'] =>
  payload.tracks.filter(track => track.group !== null && payload.groups[track.group]?.kind !== 'profiler');

/** Return the ids of the tracks that the selection sums up, as a parameter: threads and streams, or one kind. */
export const summedTracks = (payload: TracePayload, sums: SummedKind): string =>
  workTracks(payload)
    .filter(({ kind }) =>
      sums === 'thread' || sums === 'stream' ? kind === sums : kind === 'thread' || kind === 'stream',
    )
    .map(track => track.id)
    .join(',');

/** Return the visible threads and streams with the most slices, `max` of them at most, in display order. */
export function busiestTracks(
  payload: TracePayload,
  max = MAP_TRACKS,
  hidden: readonly number[] = [],
): number[] {
  const candidates = payload.tracks.filter(
    track =>
      !hidden.includes(track.id) &&
      (track.kind === 'thread' || track.kind === 'stream') &&
      track.role !== 'annotation' &&
      track.role !== 'sync' &&
      track.role !== 'graph',
  );
  const chosen = new Set(
    [...candidates]
      .sort((a, b) => b.slices - a.slices)
      .slice(0, max)
      .map(track => track.id),
  );
  return candidates.filter(track => chosen.has(track.id)).map(track => track.id);
}

const hasSlices = ({ kind, slices, untimed }: Track): boolean =>
  (kind === 'thread' || kind === 'stream') && slices > untimed;

/** Return the tracks to hide initially: the profiler's own and instants, unless there is nothing else. */
export function initiallyHidden(payload: TracePayload): number[] {
  const isProfiler = ({ group }: Track) => group !== null && payload.groups[group]!.kind === 'profiler';
  const tracks = payload.tracks.filter(track => track.kind !== 'steps');
  const others = tracks.filter(track => !isProfiler(track));
  if (others.length === 0) {
    return [];
  }
  const instants = others.some(hasSlices) ? others.filter(track => track.kind === 'instants') : [];
  return [...tracks.filter(isProfiler), ...instants].map(track => track.id);
}

/** Return threads and streams with nothing to draw: only folded Python frames, or slices without a time. */
export function emptyTracks(payload: TracePayload): number[] {
  const slices = payload.tracks.filter(({ kind }) => kind === 'thread' || kind === 'stream');
  const empty = slices.filter(track => track.depth === 0).map(track => track.id);
  return empty.length < slices.length ? empty : [];
}

/** Toggle each of `chosen` in `first`; applied twice it returns `chosen`, so that only differences are in the address. */
export const toggleAll = <T>(first: readonly T[], chosen: readonly T[]): T[] => [
  ...first.filter(each => !chosen.includes(each)),
  ...chosen.filter(each => !first.includes(each)),
];

/**
 * Return the tracks to hide initially with several ranks. A rank with streams shows its compute and communication
 * streams, and a straggler also the causes of its idle time; a rank without streams shows all but counters and the
 * profiler's own tracks.
 */
export function initiallyHiddenOfRanks(
  payload: TracePayload,
  late: readonly number[],
  count: number,
): number[] {
  const tracks = payload.tracks.filter(track => track.kind !== 'steps');
  const visible = Array.from({ length: count }, (_, rank) => {
    const own = tracks.filter(({ id }) => memberOf(id, count).index === rank);
    const lanes = collectiveStreams(own);
    return lanes.length > 0
      ? [...lanes, ...own.filter(({ kind }) => kind === 'blame' && late.includes(rank))]
      : own.filter(
          ({ kind, group }) =>
            kind !== 'counter' && (group === null || payload.groups[group]!.kind !== 'profiler'),
        );
  });
  const shown = new Set(visible.flat());
  return tracks.filter(track => !shown.has(track)).map(track => track.id);
}

/** Return the busiest compute stream of each device, and all communication streams. */
function collectiveStreams(tracks: readonly Track[]): Track[] {
  const busiest = new Map<number | null, Track>();
  for (const track of tracks.filter(({ kind, role }) => kind === 'stream' && role === 'compute')) {
    const other = busiest.get(track.device);
    if (!other || track.slices > other.slices) {
      busiest.set(track.device, track);
    }
  }
  return [...busiest.values(), ...tracks.filter(({ role }) => role === 'communication')];
}

/** Return the order of the groups with the stragglers' first; empty (the default order) without stragglers. */
export function stragglersFirst(payload: TracePayload, late: readonly number[], count: number): number[] {
  const rankOf = (group: number): number =>
    memberOf(payload.tracks.find(track => track.group === group)?.id ?? -1, count).index;
  const place = (group: number): number =>
    (late.indexOf(rankOf(group)) + late.length + 1) % (late.length + 1);
  const groups = payload.groups.map((_, group) => group);
  return late.length === 0 ? [] : groups.sort((a, b) => place(a) - place(b));
}
