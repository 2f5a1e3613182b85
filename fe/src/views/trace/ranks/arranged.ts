// How the tracks of several ranks are arranged until somebody arranges them otherwise.
import type { TracePayload } from '../../../api/types';
import { memberOf } from '../../../timeline/tiles/merge';

type Track = TracePayload['tracks'][number];

/**
 * The tracks that are hidden at first. Of a rank with streams two lanes are left, its computation and its
 * communication, and of one that keeps the others waiting what its device waits for; of a rank without streams, all
 * but counters and what the profiler says of itself.
 */
export function partingTracks(payload: TracePayload, late: readonly number[], count: number): number[] {
  const tracks = payload.tracks.filter(track => track.kind !== 'steps');
  const left = Array.from({ length: count }, (_, rank) => {
    const own = tracks.filter(({ id }) => memberOf(id, count).index === rank);
    const lanes = lanesOf(own);
    return lanes.length > 0
      ? [...lanes, ...own.filter(({ kind }) => kind === 'blame' && late.includes(rank))]
      : own.filter(
          ({ kind, group }) =>
            kind !== 'counter' && (group === null || payload.groups[group]!.kind !== 'profiler'),
        );
  });
  const shown = new Set(left.flat());
  return tracks.filter(track => !shown.has(track)).map(track => track.id);
}

/** The busiest stream that computes on each device, and those that communicate: what joins the ranks is on them. */
function lanesOf(tracks: readonly Track[]): Track[] {
  const busiest = new Map<number | null, Track>();
  for (const track of tracks.filter(({ kind, role }) => kind === 'stream' && role === 'compute')) {
    const other = busiest.get(track.device);
    if (!other || track.slices > other.slices) {
      busiest.set(track.device, track);
    }
  }
  return [...busiest.values(), ...tracks.filter(({ role }) => role === 'communication')];
}

/** The groups in order: those of the ranks that keep the others waiting, then all others as they are. */
export function lateFirst(payload: TracePayload, late: readonly number[], count: number): number[] {
  const rankOf = (group: number): number =>
    memberOf(payload.tracks.find(track => track.group === group)?.id ?? -1, count).index;
  const place = (group: number): number =>
    (late.indexOf(rankOf(group)) + late.length + 1) % (late.length + 1);
  const groups = payload.groups.map((_, group) => group);
  return late.length === 0 ? [] : groups.sort((a, b) => place(a) - place(b));
}
