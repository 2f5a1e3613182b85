// What one collective is on the tracks of each rank.
import type { ConnectionsPayload, TracePayload } from '../../../api/types';
import type { Joined } from '../../../timeline/contract';
import { memberOf, mergedId } from '../../../timeline/tiles/merge';
import type { Aligned } from './source';

/** The collectives with their events on each rank, and the tracks on which these can be. */
export function joinedEvents(
  connections: ConnectionsPayload,
  members: readonly Aligned[],
  payload: TracePayload,
  event: number | null,
): readonly Joined[] {
  const count = members.length;
  const tracks = members.map((_, index) =>
    payload.tracks
      .filter(
        track =>
          (track.kind === 'stream' || track.kind === 'thread') && memberOf(track.id, count).index === index,
      )
      .sort((a, b) => Number(b.role === 'communication') - Number(a.role === 'communication'))
      .map(track => track.id),
  );
  const indexes = new Map(members.map((member, i) => [member.worker, i]));
  return connections.rows.map(row => {
    const ends = row.members.flatMap((rank, i) => {
      const at = indexes.get(connections.ranks[rank]!.worker);
      return at === undefined
        ? []
        : [
            {
              event: mergedId(row.events[i]!, at, count),
              start: row.starts_ns[i]!,
              duration: row.ends_ns[i]! - row.starts_ns[i]!,
              tracks: tracks[at]!,
            },
          ];
    });
    return { ends, strong: ends.some(end => end.event === event) };
  });
}
