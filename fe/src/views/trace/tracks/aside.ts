// Which tracks of one trace are shown only when asked for.
import type { TracePayload } from '../../../api/types';

type Track = TracePayload['tracks'][number];

const hasSlices = ({ kind, slices, untimed }: Track): boolean =>
  (kind === 'thread' || kind === 'stream') && slices > untimed;

/** The profiler's own tracks and instants: hidden at first, unless there is nothing else. */
export function asideTracks(payload: TracePayload): number[] {
  const profilers = ({ group }: Track) => group !== null && payload.groups[group]!.kind === 'profiler';
  const tracks = payload.tracks.filter(track => track.kind !== 'steps');
  const others = tracks.filter(track => !profilers(track));
  if (others.length === 0) {
    return [];
  }
  const instants = others.some(hasSlices) ? others.filter(track => track.kind === 'instants') : [];
  return [...tracks.filter(profilers), ...instants].map(track => track.id);
}

/** Threads and streams with nothing to draw: Python frames alone while these are folded, or no time. */
export function emptyTracks(payload: TracePayload): number[] {
  const slices = payload.tracks.filter(({ kind }) => kind === 'thread' || kind === 'stream');
  const empty = slices.filter(track => track.depth === 0).map(track => track.id);
  return empty.length < slices.length ? empty : [];
}

/** What is so at first, but for what was chosen otherwise; and back. */
export const flipped = <T>(first: readonly T[], chosen: readonly T[]): T[] => [
  ...first.filter(each => !chosen.includes(each)),
  ...chosen.filter(each => !first.includes(each)),
];
