// What one trace is asked beside its tiles.
import { useMemo } from 'react';
import type {
  Selectors,
  TraceColors,
  TraceEvent,
  TraceFlows,
  TraceHeadline,
  TraceModule,
  TraceMoment,
  TracePath,
  TracePayload,
  TraceSelection,
  TraceTile,
  ViewAnswer,
} from '../../api/types';
import { useView } from '../../state/queries';
import type { Span } from '../../timeline/tiles/store';
import { decodeTile } from '../../timeline/tiles/tile';
import { mainTracks, workTracks } from './select';
import type { TraceState } from './state';

/** Buckets of the strip above the timeline. */
export const MAP_WIDTH = 800;

export const range = (begin: number, end: number) => ({
  begin: String(Math.floor(begin)),
  end: String(Math.max(Math.ceil(end), Math.floor(begin) + 1)),
});

const momentQuery = (moment: TraceState['moment'], python: boolean): Record<string, string> => ({
  device: String(moment?.device ?? 0),
  at: String(moment?.at ?? 0),
  ...(moment && moment.until !== null ? { until: String(moment.until), category: moment.category } : {}),
  ...(python ? { python: 'true' } : {}),
});

const spanQuery = (window: Span, python: boolean): Record<string, string> => ({
  ...range(window.begin, window.end),
  ...(python ? { python: 'true' } : {}),
});

/** The answers about the selected slice, the selected window, the window in sight and the whole trace; those about
 * another slice than the one that is selected now are left out. */
export function useAnswers(
  payload: TracePayload,
  selectors: Selectors,
  state: TraceState,
  shown: Span,
  drawn: boolean,
) {
  const python = payload.python;
  const { event, area } = state;
  const about = { event: String(event ?? 0), ...(python ? { python: 'true' } : {}) };
  const chosen = event !== null;
  const eventAnswer = useView<TraceEvent>('trace/event', selectors, about, chosen);
  const flowsAnswer = useView<TraceFlows>('trace/flows', selectors, about, chosen);
  const moduleAnswer = useView<TraceModule>('trace/module', selectors, about, chosen);
  const { moment } = state;
  const momentAnswer = useView<TraceMoment>(
    'trace/moment',
    selectors,
    momentQuery(moment, python),
    moment !== null,
  );
  const around = shown.end - shown.begin;
  const pathAnswer = useView<TracePath>(
    'trace/path',
    selectors,
    range(shown.begin - around, shown.end + around),
    state.path && drawn,
  );
  const allWork = workTracks(payload)
    .filter(track => track.kind === 'thread' || track.kind === 'stream')
    .map(track => track.id)
    .join(',');
  const areaAnswer = useView<TraceSelection>(
    'trace/selection',
    selectors,
    { ...spanQuery(area ?? shown, python), tracks: allWork },
    area !== null,
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
  const mapTracks = useMemo(() => mainTracks(payload), [payload]);
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
    current: chosen ? ofEvent(eventAnswer, event) : undefined,
    flows: chosen ? ofEvent(flowsAnswer, event) : undefined,
    module: chosen ? ofEvent(moduleAnswer, event) : undefined,
    moment: moment && !momentAnswer.isPlaceholderData ? ready(momentAnswer) : undefined,
    path: state.path ? ready(pathAnswer) : undefined,
    added: area ? ready(areaAnswer) : undefined,
    inSight: ready(windowAnswer),
    colors: ready(colorsAnswer),
    map: { tile: mapTile, tracks: mapTracks },
    error:
      (chosen ? eventAnswer.error : moment ? momentAnswer.error : state.path ? pathAnswer.error : null)
        ?.message ?? null,
  };
}

const ready = <P>({ data }: { data?: ViewAnswer<P> }): P | undefined =>
  data?.state === 'ready' ? data.payload : undefined;

/** The payload if it is about this slice. */
function ofEvent<P extends { event: number }>(
  answer: { data?: ViewAnswer<P> },
  event: number,
): P | undefined {
  const payload = ready(answer);
  return payload?.event === event ? payload : undefined;
}
