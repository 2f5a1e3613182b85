// The arrows between slices that cause each other. No React.
import type { TraceFlows, TraceMoment } from '../../../api/types';
import { formatDuration } from '../../../base/format';
import type { Lit } from '../../../timeline/contract';
import type { Arrow, Place } from '../../../timeline/draw/overlay';

/** More arrows than this hide what they join; the lit slices then tell enough. */
const SHOWN_ARROWS = 12;

/** What the flow through a slice joins; none where they would be too many to see. */
export function arrows(flows: TraceFlows): Arrow[] {
  if (flows.total > SHOWN_ARROWS) {
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

/** Lights the device work that was launched in a slice, on its streams. */
export function launched({ event, kernels }: TraceFlows): Lit | null {
  const rows = new Set([event, ...kernels]);
  return kernels.length > 0 ? (track, row) => track.kind !== 'stream' || rows.has(row) : null;
}

/** From what is to blame to the part of a device's time that it is blamed for. */
export function blameArrow(moment: TraceMoment): Arrow[] {
  const from = moment.subject && placeOf(moment.subject);
  return from ? [{ from, to: placeOfMoment(moment), label: '', strong: true }] : [];
}

export const placeOfMoment = ({ track, begin_ns: start, end_ns: end }: TraceMoment): Place => ({
  track,
  depth: 0,
  start,
  duration: end - start,
});

interface Slice {
  track: number | null;
  depth: number | null;
  start_ns: number | null;
  duration_ns: number | null;
}

/** Where a slice is drawn, if it is. */
export function placeOf({ track, depth, start_ns, duration_ns }: Slice): Place | null {
  return track === null || depth === null || start_ns === null
    ? null
    : { track, depth, start: start_ns, duration: duration_ns ?? 0 };
}
