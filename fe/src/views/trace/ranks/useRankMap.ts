// The strip of several ranks: a few of the busiest tracks of each.
import { useMemo } from 'react';
import type { TracePayload, TraceTile } from '../../../api/types';
import { useViewOfEach } from '../../../state/queries';
import { mergedId, mergeTiles } from '../../../timeline/tiles/merge';
import { decodeTile } from '../../../timeline/tiles/tile';
import { MAP_WIDTH, range } from '../answers';
import { mainTracks } from '../select';
import type { Aligned } from './source';

const LANES = 8;

/** `tile` also holds what the strip has no room for: the legend counts it. */
export function useRankMap(
  run: string,
  members: readonly Aligned[],
  merged: TracePayload,
  drawn: boolean,
  hidden: readonly number[],
) {
  const count = members.length;
  const aside = JSON.stringify(hidden);
  const shown = useMemo(
    () => members.map((member, index) => shownOf(member, index, count, JSON.parse(aside) as number[])),
    [members, count, aside],
  );
  const { begin_ns: begin, end_ns: end } = merged;
  const { payloads } = useViewOfEach<TraceTile>(
    'trace/tile',
    members.map(({ worker, span, shift }, i) => [
      { run, worker, span },
      {
        ...range(begin - shift, end - shift),
        width: String(MAP_WIDTH),
        tracks: mainTracks(shown[i]!).join(','),
      },
    ]),
    drawn,
  );
  const tile = useMemo(
    () => payloads && mergeTiles(payloads.map(decodeTile), members, begin, end),
    [payloads, members, begin, end],
  );
  const tracks = useMemo(() => {
    const most = Math.max(1, Math.floor(LANES / count));
    return shown.flatMap((each, i) => mainTracks(each, most).map(id => mergedId(id, i, count)));
  }, [shown, count]);
  return { tile, tracks };
}

/** Streams where any are shown: what the ranks have in common is on them. */
function shownOf(
  { payload }: Aligned,
  index: number,
  count: number,
  hidden: readonly number[],
): TracePayload {
  const shown = payload.tracks.filter(({ id }) => !hidden.includes(mergedId(id, index, count)));
  const streams = shown.filter(track => track.kind === 'stream');
  return { ...payload, tracks: streams.length > 0 ? streams : shown };
}
