// What one trace is asked beside its tiles.
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
import { addedTracks, mainTracks } from './select';
import type { TraceState } from './state';

/** Buckets of the strip above the timeline. */
export const MAP_WIDTH = 800;

export const range = (begin: number, end: number) => ({
  begin: String(Math.floor(begin)),
  end: String(Math.max(Math.ceil(end), Math.floor(begin) + 1)),
});

const spanQuery = (window: Span, python: boolean): Record<string, string> => ({
  ...range(window.begin, window.end),
  ...(python ? { python: 'true' } : {}),
});

/** The answers about the selected window, the window in sight, and of the whole trace what is not hidden. */
export function useAnswers(
  payload: TracePayload,
  selectors: Selectors,
  state: TraceState,
  shown: Span,
  drawn: boolean,
  hidden: readonly number[],
) {
  const { python } = payload;
  const { area } = state;
  const { sums } = state;
  const added = addedTracks(payload, sums);
  const areaAnswer = useView<TraceSelection>(
    'trace/selection',
    selectors,
    { ...spanQuery(area ?? shown, python), tracks: added },
    area !== null,
  );
  const countersAnswer = useView<TraceCounters>(
    'trace/counters',
    selectors,
    { ...range(area?.begin ?? 0, area?.end ?? 1), width: '1' },
    area !== null && sums === 'counter',
  );
  const windowAnswer = useView<TraceHeadline>(
    'trace/headline',
    selectors,
    range(shown.begin, shown.end),
    drawn,
  );
  const colorsAnswer = useView<TraceColors>(
    'trace/colors',
    selectors,
    { by: state.color },
    !['class', 'name'].includes(state.color),
  );
  const aside = JSON.stringify(hidden);
  const mapTracks = useMemo(
    () => mainTracks(payload, undefined, JSON.parse(aside) as number[]),
    [payload, aside],
  );
  const mapAnswer = useView<TraceTile>(
    'trace/tile',
    selectors,
    {
      ...range(payload.begin_ns, Math.max(payload.end_ns, payload.begin_ns + 1)),
      width: String(MAP_WIDTH),
      tracks: mapTracks.join(','),
    },
    drawn,
  );
  const wire = ready(mapAnswer);
  const mapTile = useMemo(() => wire && decodeTile(wire), [wire]);
  return {
    added: area ? ready(areaAnswer) : undefined,
    counters: area && sums === 'counter' ? ready(countersAnswer) : undefined,
    inSight: ready(windowAnswer),
    colors: ready(colorsAnswer),
    map: { tile: mapTile, tracks: mapTracks },
  };
}

const ready = <P>({ data }: { data?: ViewAnswer<P> }): P | undefined =>
  data?.state === 'ready' ? data.payload : undefined;
