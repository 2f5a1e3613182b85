// Answers about several ranks: common colors, their collectives, and the overview strip.
import { useMemo } from 'react';
import type { ConnectionsPayload, TraceColors, TracePayload, TraceTile } from '../../../api/types';
import { useViewOfEach } from '../../../state/queries';
import type { JoinedEvent } from '../../../timeline/contract';
import type { ColorBy } from '../../../timeline/draw/colors';
import {
  unchangedColors,
  memberOf,
  mergeColors,
  mergedId,
  mergeTiles,
  type MergedColors,
} from '../../../timeline/tiles/merge';
import { decodeTile } from '../../../timeline/tiles/tile';
import { MAP_BUCKETS, rangeParams } from '../answers';
import type { AlignedRank } from '../source';
import { busiestTracks } from '../trackSets';

/** Return the colors of all ranks by `wanted`; by class until the legends are loaded. */
export function useRankColors(run: string, members: readonly AlignedRank[], wanted: ColorBy) {
  const hasLegend = wanted !== 'class' && wanted !== 'name';
  const { payloads } = useViewOfEach<TraceColors>(
    'trace/colors',
    members.map(({ worker, span }) => [{ run, worker, span }, { by: wanted }]),
    hasLegend,
  );
  const recolored = useMemo(
    () =>
      hasLegend && payloads?.every(({ by }) => by === wanted)
        ? (wanted === 'family' ? mergeFamilies : mergeColors)(payloads.map(({ texts }) => texts))
        : wanted === 'name'
          ? unchangedColors(members)
          : undefined,
    [hasLegend, payloads, wanted, members],
  );
  const by: ColorBy = recolored ? wanted : 'class';
  return { by, recolored };
}

/** Merge the legends of families, whose codes are the same on all ranks; a family is named if any rank has it. */
const mergeFamilies = (legends: readonly string[][]): MergedColors => ({
  texts: legends[0]!.map((_, code) => legends.map(texts => texts[code]!).find(Boolean) ?? ''),
  codes: legends.map(texts => texts.map((_, code) => code)),
});

/** Return the collectives with their event on each rank and the tracks that may hold it. */
export function joinedEvents(
  connections: ConnectionsPayload,
  members: readonly AlignedRank[],
  payload: TracePayload,
  event: number | null,
): readonly JoinedEvent[] {
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

/** Most tracks in the strip, of all ranks together. */
const MAP_TRACKS = 8;

/** Return the tracks of the overview strip and their tile, which holds more tracks than drawn: the legend counts them. */
export function useRankMap(
  run: string,
  members: readonly AlignedRank[],
  merged: TracePayload,
  enabled: boolean,
  hidden: readonly number[],
) {
  const count = members.length;
  const aside = JSON.stringify(hidden);
  const shown = useMemo(
    () =>
      members.map((member, index) => withVisibleTracks(member, index, count, JSON.parse(aside) as number[])),
    [members, count, aside],
  );
  const { begin_ns: begin, end_ns: end } = merged;
  const { payloads } = useViewOfEach<TraceTile>(
    'trace/tile',
    members.map(({ worker, span, shift }, i) => [
      { run, worker, span },
      {
        ...rangeParams(begin - shift, end - shift),
        width: String(MAP_BUCKETS),
        tracks: busiestTracks(shown[i]!).join(','),
      },
    ]),
    enabled,
  );
  const tile = useMemo(
    () => payloads && mergeTiles(payloads.map(decodeTile), members, begin, end),
    [payloads, members, begin, end],
  );
  const tracks = useMemo(() => {
    const max = Math.max(1, Math.floor(MAP_TRACKS / count));
    return shown.flatMap((each, i) => busiestTracks(each, max).map(id => mergedId(id, i, count)));
  }, [shown, count]);
  return { tile, tracks };
}

/** Return the rank's payload with its visible streams only, or its visible tracks if it has no stream. */
function withVisibleTracks(
  { payload }: AlignedRank,
  index: number,
  count: number,
  hidden: readonly number[],
): TracePayload {
  const shown = payload.tracks.filter(({ id }) => !hidden.includes(mergedId(id, index, count)));
  const streams = shown.filter(track => track.kind === 'stream');
  return { ...payload, tracks: streams.length > 0 ? streams : shown };
}
