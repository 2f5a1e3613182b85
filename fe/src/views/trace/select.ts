// Which tracks are added up, and which stand for all in the strip above the timeline.
import type { TracePayload } from '../../api/types';
import type { Tile } from '../../timeline/tiles/tile';
import type { Sums } from './state';

const IN_STRIP = 4;

/** The tracks of processes and devices, without what the profiler says of itself. */
export const workTracks = (payload: TracePayload): TracePayload['tracks'] =>
  payload.tracks.filter(track => track.group !== null && payload.groups[track.group]?.kind !== 'profiler');

/** The tracks that a window is added up over, as a parameter: threads and streams, or those of one kind. */
export const addedTracks = (payload: TracePayload, sums: Sums): string =>
  workTracks(payload)
    .filter(({ kind }) =>
      sums === 'thread' || sums === 'stream' ? kind === sums : kind === 'thread' || kind === 'stream',
    )
    .map(track => track.id)
    .join(',');

/** The busiest threads and streams, in the order they are shown; those that are not shown stand for nothing. */
export function mainTracks(payload: TracePayload, most = IN_STRIP, hidden: readonly number[] = []): number[] {
  const candidates = payload.tracks.filter(
    track =>
      !hidden.includes(track.id) &&
      (track.kind === 'thread' || track.kind === 'stream') &&
      track.role !== 'annotation' &&
      track.role !== 'sync',
  );
  const chosen = new Set(
    [...candidates]
      .sort((a, b) => b.slices - a.slices)
      .slice(0, most)
      .map(track => track.id),
  );
  return candidates.filter(track => chosen.has(track.id)).map(track => track.id);
}

/** What the boxes of each color take, ns: those that lie in others count, too. */
export function timeByColor({ color, busy }: Tile): Map<number, number> {
  const times = new Map<number, number>();
  color.forEach((code, i) => times.set(code, (times.get(code) ?? 0) + busy[i]!));
  return times;
}
