// Which tracks are added up, and which stand for all in the strip above the timeline.
import type { TracePayload } from '../../api/types';

const IN_STRIP = 4;

/** The tracks of processes and devices, without what the profiler says of itself. */
export const workTracks = (payload: TracePayload): TracePayload['tracks'] =>
  payload.tracks.filter(track => track.group !== null && payload.groups[track.group]?.kind !== 'profiler');

/** The busiest threads and streams, in the order they are shown. */
export function mainTracks(payload: TracePayload, most = IN_STRIP): number[] {
  const candidates = payload.tracks.filter(
    track =>
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
