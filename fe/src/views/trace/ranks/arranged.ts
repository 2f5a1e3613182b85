// How the tracks of several ranks are arranged until somebody arranges them otherwise.
import type { TracePayload } from '../../../api/types';
import { memberOf } from '../../../timeline/tiles/merge';

type Track = TracePayload['tracks'][number];

const isThread = ({ kind }: Track): boolean => kind === 'thread' || kind === 'instants';

/** Counters, and what the profiler says of itself, would part the ranks: they are hidden at first. */
export const partingTracks = (payload: TracePayload): number[] =>
  payload.tracks
    .filter(
      ({ kind, group }) =>
        kind === 'counter' || (group !== null && payload.groups[group]!.kind === 'profiler'),
    )
    .map(track => track.id);

/** The threads are folded at first: what the ranks have in common is on the streams. */
export const foldedTracks = (payload: TracePayload): string[] =>
  payload.tracks.some(track => track.kind === 'stream')
    ? payload.tracks.filter(isThread).map(track => String(track.id))
    : [];

/** The groups in order: those of the ranks that keep the others waiting, then all others as they are. */
export function lateFirst(payload: TracePayload, late: readonly number[], count: number): number[] {
  const rankOf = (group: number): number =>
    memberOf(payload.tracks.find(track => track.group === group)?.id ?? -1, count).index;
  const place = (group: number): number =>
    (late.indexOf(rankOf(group)) + late.length + 1) % (late.length + 1);
  const groups = payload.groups.map((_, group) => group);
  return late.length === 0 ? [] : groups.sort((a, b) => place(a) - place(b));
}
