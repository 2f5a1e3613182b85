// The selected slice or part of a device's time: its answers, its flow, and how both are drawn.
import { useEffect, useMemo, useRef } from 'react';
import type {
  OriginEvent,
  Selectors,
  TraceEvent,
  TraceFlows,
  TraceModule,
  TraceMoment,
  TracePayload,
  ViewAnswer,
} from '../../../api/types';
import { formatDuration } from '../../../base/format';
import { useView } from '../../../state/queries';
import type { Highlight } from '../../../timeline/contract';
import type { Arrow, SlicePlace } from '../../../timeline/draw/overlay';
import { memberOf, mergedId } from '../../../timeline/tiles/merge';
import type { TraceState } from '../state';

/** One of the traces on a timeline; `shift` (ns) is added to its times. */
export interface TimelineTrace {
  selectors: Selectors;
  shift: number;
  payload: TracePayload;
}

/** Kinds of events that ran on a device. */
const DEVICE_KINDS = new Set(['kernel', 'memcpy', 'memset']);

const NO_ARROWS: readonly Arrow[] = [];

/** Fetch the answers about the selection; those about an earlier selection are left out. */
export function useSelectedSlice(
  members: readonly TimelineTrace[],
  { event, moment }: TraceState,
  python: boolean,
) {
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
  const isMoment = !chosen && moment !== null;
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
    isMoment,
  );
  const current = chosen ? payloadAbout(eventAnswer, id) : undefined;
  const flows = chosen ? payloadAbout(flowsAnswer, id) : undefined;
  const currentMoment = isMoment && !momentAnswer.isPlaceholderData ? readyPayload(momentAnswer) : undefined;
  const isDeviceWork = current !== undefined && DEVICE_KINDS.has(current.kind);
  const hasOrigin = isDeviceWork || /^graph_\d+_cpp_fused_/.test(current?.name ?? '');
  const originAnswer = useView<OriginEvent>('origins/event', selectors, { event: String(id) }, hasOrigin);
  const selected = useMemo(
    () => selectionDrawing(current, flows, currentMoment, members, index),
    [current, flows, currentMoment, members, index],
  );
  return {
    ...selected,
    /** Index of its trace; 0 while nothing is selected. */
    index,
    /** Its id in that trace. */
    event: chosen ? id : null,
    /** Return the id on the timeline of an event of that trace. */
    merged: (id: number) => mergedId(id, index, count),
    shift,
    current,
    flows,
    module: chosen ? payloadAbout(moduleAnswer, id) : undefined,
    origin: hasOrigin ? payloadAbout(originAnswer, id) : undefined,
    moment: currentMoment,
    error: (chosen ? eventAnswer.error : isMoment ? momentAnswer.error : null)?.message ?? null,
  };
}

export type SelectedSlice = ReturnType<typeof useSelectedSlice>;

/** Return where the selection is drawn, its arrows, and what is highlighted with it. */
export function selectionDrawing(
  current: TraceEvent | undefined,
  flows: TraceFlows | undefined,
  currentMoment: TraceMoment | undefined,
  members: readonly { shift: number }[],
  index: number,
): { place: SlicePlace | null; arrows: readonly Arrow[]; highlight: Highlight | null } {
  const count = members.length;
  const { shift } = members[index]!;
  const here = (place: SlicePlace): SlicePlace => ({
    ...place,
    track: mergedId(place.track, index, count),
    start: place.start + shift,
  });
  const place = current ? placeOf(current) : currentMoment ? placeOfMoment(currentMoment) : null;
  const joins = flows ? flowArrows(flows) : currentMoment ? blameArrow(currentMoment) : NO_ARROWS;
  const launchedHighlight = flows ? highlightLaunched(flows) : null;
  return {
    place: place && here(place),
    arrows: joins.map(arrow => ({ ...arrow, from: here(arrow.from), to: here(arrow.to) })),
    // Slices of other traces don't fade: they were not launched by this one.
    highlight:
      launchedHighlight &&
      ((track, row, ...rest) =>
        memberOf(track.id, count).index !== index ||
        launchedHighlight(track, memberOf(row, count).id, ...rest)),
  };
}

const readyPayload = <P>({ data }: { data?: ViewAnswer<P> }): P | undefined =>
  data?.state === 'ready' ? data.payload : undefined;

/** Return the payload if it is about this slice. */
function payloadAbout<P extends { event: number }>(
  answer: { data?: ViewAnswer<P> },
  event: number,
): P | undefined {
  const payload = readyPayload(answer);
  return payload?.event === event ? payload : undefined;
}

/** Most arrows drawn; more would cover the slices, which are highlighted anyway. */
const MAX_ARROWS = 12;

/** Return the arrows of the flow through a slice; none if there are more than `MAX_ARROWS`. */
function flowArrows(flows: TraceFlows): Arrow[] {
  if (flows.total > MAX_ARROWS) {
    return [];
  }
  return flows.edges.flatMap(edge => {
    const [from, to] = [placeOf(edge.source), placeOf(edge.target)];
    const strong = edge.source.event === flows.event || edge.target.event === flows.event;
    const delay = edge.delay_ns === null ? '' : formatDuration(edge.delay_ns);
    const label = edge.kind === 'launch' && delay ? `queued ${delay}` : delay;
    return from && to ? [{ from, to, label: flows.edges.length <= 3 ? label : '', strong }] : [];
  });
}

/** Highlight the device work that a slice launched; null if it launched none. */
function highlightLaunched({ event, kernels }: TraceFlows): Highlight | null {
  const rows = new Set([event, ...kernels]);
  return kernels.length > 0 ? (track, row) => track.kind !== 'stream' || rows.has(row) : null;
}

/** Return the arrow from the cause to the device's idle time. */
function blameArrow(moment: TraceMoment): Arrow[] {
  const from = moment.subject && placeOf(moment.subject);
  return from ? [{ from, to: placeOfMoment(moment), label: '', strong: true }] : [];
}

const placeOfMoment = ({ track, begin_ns: start, end_ns: end }: TraceMoment): SlicePlace => ({
  track,
  depth: 0,
  start,
  duration: end - start,
});

interface PlacedSlice {
  track: number | null;
  depth: number | null;
  start_ns: number | null;
  duration_ns: number | null;
}

/** Return where a slice is drawn; null if it isn't. */
function placeOf({ track, depth, start_ns, duration_ns }: PlacedSlice): SlicePlace | null {
  return track === null || depth === null || start_ns === null
    ? null
    : { track, depth, start: start_ns, duration: duration_ns ?? 0 };
}

type Direction = 'previous' | 'next';

/** Return a function that moves along the flow; a key pressed before the flow is loaded is applied once it is. */
export function useFollow(
  flows: TraceFlows | undefined,
  event: number | null,
  choose: (event: number | null) => void,
): (direction: Direction) => void {
  const queued = useRef<{ event: number | null; direction: Direction } | null>(null);
  useEffect(() => {
    if (!flows || !queued.current) {
      return;
    }
    const { event: from, direction } = queued.current;
    queued.current = null;
    const next = flows.event === from ? flows[direction][0] : undefined;
    if (next !== undefined) {
      choose(next);
    }
  }, [flows, choose]);
  return direction => {
    queued.current = flows ? null : { event, direction };
    if (flows) {
      choose(flows[direction][0] ?? event);
    }
  };
}
