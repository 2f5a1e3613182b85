// Answers about one trace beside its tiles: selection, headline, colors, and the overview strip.
import { useMemo } from 'react';
import type {
  Selectors,
  TraceColors,
  TraceCounters,
  TraceHeadline,
  TracePayload,
  TraceSelection,
  TraceTile,
  ViewAnswer,
} from '../../api/types';
import { useView } from '../../state/queries';
import type { Span } from '../../timeline/tiles/store';
import { decodeTile } from '../../timeline/tiles/tile';
import { summedTracks, busiestTracks } from './trackSets';
import type { TraceState } from './state';

/** Buckets of the overview strip. */
export const MAP_BUCKETS = 800;

export const rangeParams = (begin: number, end: number) => ({
  begin: String(Math.floor(begin)),
  end: String(Math.max(Math.ceil(end), Math.floor(begin) + 1)),
});

const spanQuery = (window: Span, python: boolean): Record<string, string> => ({
  ...rangeParams(window.begin, window.end),
  ...(python ? { python: 'true' } : {}),
});

/** Fetch the answers about the selected window, the visible window, and the visible tracks of the entire trace. */
export function useAnswers(
  payload: TracePayload,
  selectors: Selectors,
  state: TraceState,
  shown: Span,
  isDrawn: boolean,
  hidden: readonly number[],
) {
  const { python } = payload;
  const { area } = state;
  const { sums } = state;
  const tracks = summedTracks(payload, sums);
  const areaAnswer = useView<TraceSelection>(
    'trace/selection',
    selectors,
    { ...spanQuery(area ?? shown, python), tracks },
    area !== null,
  );
  const countersAnswer = useView<TraceCounters>(
    'trace/counters',
    selectors,
    { ...rangeParams(area?.begin ?? 0, area?.end ?? 1), width: '1' },
    area !== null && sums === 'counter',
  );
  const windowAnswer = useView<TraceHeadline>(
    'trace/headline',
    selectors,
    rangeParams(shown.begin, shown.end),
    isDrawn,
  );
  const colorsAnswer = useView<TraceColors>(
    'trace/colors',
    selectors,
    { by: state.color },
    !['class', 'name'].includes(state.color),
  );
  const aside = JSON.stringify(hidden);
  const mapTracks = useMemo(
    () => busiestTracks(payload, undefined, JSON.parse(aside) as number[]),
    [payload, aside],
  );
  const mapAnswer = useView<TraceTile>(
    'trace/tile',
    selectors,
    {
      ...rangeParams(payload.begin_ns, Math.max(payload.end_ns, payload.begin_ns + 1)),
      width: String(MAP_BUCKETS),
      tracks: mapTracks.join(','),
    },
    isDrawn,
  );
  const wire = ready(mapAnswer);
  const mapTile = useMemo(() => wire && decodeTile(wire), [wire]);
  return {
    selection: area ? ready(areaAnswer) : undefined,
    counters: area && sums === 'counter' ? ready(countersAnswer) : undefined,
    headline: ready(windowAnswer),
    colors: ready(colorsAnswer),
    map: { tile: mapTile, tracks: mapTracks },
  };
}

const ready = <P>({ data }: { data?: ViewAnswer<P> }): P | undefined =>
  data?.state === 'ready' ? data.payload : undefined;
