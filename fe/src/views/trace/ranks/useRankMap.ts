// The strip of several ranks: a few of the busiest tracks of each.
import { useMemo } from 'react';
import type { TracePayload, TraceTile } from '../../../api/types';
import { useEach } from '../../../state/queries';
import { mergedId, mergeTiles } from '../../../timeline/tiles/merge';
import { decodeTile } from '../../../timeline/tiles/tile';
import { MAP_WIDTH, range } from '../answers';
import { mainTracks } from '../select';
import type { Aligned } from './source';

const LANES = 8;

export function useRankMap(run: string, members: readonly Aligned[], merged: TracePayload, drawn: boolean) {
  const tracks = useMemo(() => members.map(member => tracksOf(member, members.length)), [members]);
  const { begin_ns: begin, end_ns: end } = merged;
  const { payloads } = useEach<TraceTile>(
    'trace/tile',
    members.map(({ worker, span, shift }, i) => [
      { run, worker, span },
      { ...range(begin - shift, end - shift), width: String(MAP_WIDTH), tracks: tracks[i]!.join(',') },
    ]),
    drawn,
  );
  const tile = useMemo(
    () => payloads && mergeTiles(payloads.map(decodeTile), members, begin, end),
    [payloads, members, begin, end],
  );
  const ids = useMemo(
    () => tracks.flatMap((each, i) => each.map(id => mergedId(id, i, members.length))),
    [tracks, members],
  );
  return { tile, tracks: ids };
}

/** Streams where there are any: what the ranks have in common is on them. */
function tracksOf({ payload }: Aligned, count: number): number[] {
  const streams = payload.tracks.filter(track => track.kind === 'stream');
  const from = streams.length > 0 ? { ...payload, tracks: streams } : payload;
  return mainTracks(from, Math.max(1, Math.floor(LANES / count)));
}
