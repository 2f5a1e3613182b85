// What is known of the selected slice, or part of a device's time: of the trace that it is in, drawn among all.
import { useMemo } from 'react';
import type {
  Selectors,
  TraceEvent,
  TraceFlows,
  TraceModule,
  TraceMoment,
  TracePayload,
  ViewAnswer,
} from '../../../api/types';
import { useView } from '../../../state/queries';
import type { Lit } from '../../../timeline/contract';
import type { Arrow, Place } from '../../../timeline/draw/overlay';
import { memberOf, mergedId } from '../../../timeline/tiles/merge';
import type { TraceState } from '../state';
import { arrows, blameArrow, launched, placeOf, placeOfMoment } from './flows';

/** One of the traces on a timeline; `shift` leads from its time to that of the timeline, ns. */
export interface Drawn {
  selectors: Selectors;
  shift: number;
  payload: TracePayload;
}

const NO_ARROWS: readonly Arrow[] = [];

/** Answers about another slice than the one that is selected now are left out. */
export function useSelected(members: readonly Drawn[], { event, moment }: TraceState, python: boolean) {
  const count = members.length;
  const at = event ?? moment?.device ?? 0;
  const { index, id } = useMemo(() => memberOf(at, count), [at, count]);
  const { selectors, shift } = members[index]!;
  const frames: Record<string, string> = python ? { python: 'true' } : {};
  const about = { event: String(id), ...frames };
  const chosen = event !== null;
  const eventAnswer = useView<TraceEvent>('trace/event', selectors, about, chosen);
  const flowsAnswer = useView<TraceFlows>('trace/flows', selectors, about, chosen);
  const moduleAnswer = useView<TraceModule>('trace/module', selectors, about, chosen);
  const waits = !chosen && moment !== null;
  const momentAnswer = useView<TraceMoment>(
    'trace/moment',
    selectors,
    {
      device: String(id),
      at: String(Math.floor((moment?.at ?? 0) - shift)),
      ...(moment && moment.until !== null
        ? { until: String(Math.ceil(moment.until - shift)), category: moment.category }
        : {}),
      ...frames,
    },
    waits,
  );
  const current = chosen ? ofEvent(eventAnswer, id) : undefined;
  const flows = chosen ? ofEvent(flowsAnswer, id) : undefined;
  const waiting = waits && !momentAnswer.isPlaceholderData ? ready(momentAnswer) : undefined;
  const drawn = useMemo(
    () => drawnOf(current, flows, waiting, members, index),
    [current, flows, waiting, members, index],
  );
  return {
    ...drawn,
    /** The trace that it is in; of the first while nothing is selected. */
    index,
    /** Its number in that trace. */
    event: chosen ? id : null,
    /** The number on the timeline of an event of that trace. */
    merged: (own: number) => mergedId(own, index, count),
    shift,
    current,
    flows,
    module: chosen ? ofEvent(moduleAnswer, id) : undefined,
    moment: waiting,
    error: (chosen ? eventAnswer.error : waits ? momentAnswer.error : null)?.message ?? null,
  };
}

export type Selected = ReturnType<typeof useSelected>;

/** Where it is on the timeline, what it is joined with, and what is lit with it. */
export function drawnOf(
  current: TraceEvent | undefined,
  flows: TraceFlows | undefined,
  waiting: TraceMoment | undefined,
  members: readonly { shift: number }[],
  index: number,
): { place: Place | null; arrows: readonly Arrow[]; lit: Lit | null } {
  const count = members.length;
  const { shift } = members[index]!;
  const here = (place: Place): Place => ({
    ...place,
    track: mergedId(place.track, index, count),
    start: place.start + shift,
  });
  const place = current ? placeOf(current) : waiting ? placeOfMoment(waiting) : null;
  const joins = flows ? arrows(flows) : waiting ? blameArrow(waiting) : NO_ARROWS;
  const own = flows ? launched(flows) : null;
  return {
    place: place && here(place),
    arrows: joins.map(arrow => ({ ...arrow, from: here(arrow.from), to: here(arrow.to) })),
    // What other traces hold was not launched there, and does not fade for it.
    lit:
      own &&
      ((track, row, ...rest) =>
        memberOf(track.id, count).index !== index || own(track, memberOf(row, count).id, ...rest)),
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
