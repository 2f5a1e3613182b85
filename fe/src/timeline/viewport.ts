// The visible time window, and how panning and zooming change it; ns since the start of the trace.
import type { Span } from './tiles/store';

/** Shortest window, ns: nothing is shorter than 1 ns, which is then some 20 px wide. */
const MIN_WINDOW_NS = 50;
/** Margin at both ends of the trace, as a ratio of its length. */
const MARGIN_RATIO = 0.02;

/** Return the window that shows the entire trace with a margin at both ends. */
export function fullWindow(extent: Span): Span {
  const margin = Math.max((extent.end - extent.begin) * MARGIN_RATIO, MIN_WINDOW_NS);
  return { begin: Math.floor(extent.begin - margin), end: Math.ceil(extent.end + margin) };
}

/** Return the time that a trace spans. */
export const extentOf = (payload: { begin_ns: number; end_ns: number }): Span => ({
  begin: payload.begin_ns,
  end: Math.max(payload.end_ns, payload.begin_ns + 1),
});

/** Return the window that the page opens with: all slices, even if marks and counters lie outside. */
export const openingWindow = (payload: { first_begin_ns: number; first_end_ns: number }): Span =>
  fullWindow({ begin: payload.first_begin_ns, end: payload.first_end_ns });

/** Return the window moved into the trace and no shorter than `MIN_WINDOW_NS`. */
export function clampWindow(window: Span, extent: Span): Span {
  const all = fullWindow(extent);
  const span = Math.min(Math.max(window.end - window.begin, MIN_WINDOW_NS), all.end - all.begin);
  const middle = (window.begin + window.end) / 2;
  const begin = Math.min(Math.max(middle - span / 2, all.begin), all.end - span);
  return { begin, end: begin + span };
}

/** Zoom in (factor < 1) or out; the instant `at` keeps its place on the screen. */
export function zoomWindow(window: Span, factor: number, at: number, extent: Span): Span {
  const all = fullWindow(extent);
  const span = Math.min(Math.max((window.end - window.begin) * factor, MIN_WINDOW_NS), all.end - all.begin);
  const share = (at - window.begin) / (window.end - window.begin);
  return clampWindow({ begin: at - share * span, end: at + (1 - share) * span }, extent);
}

export function panWindow(window: Span, by: number, extent: Span): Span {
  return clampWindow({ begin: window.begin + by, end: window.end + by }, extent);
}

/** Return the window in which a span fills two thirds of the width. */
export function windowAround(span: Span, extent: Span): Span {
  const length = Math.max(span.end - span.begin, MIN_WINDOW_NS / 2);
  return clampWindow({ begin: span.begin - length / 4, end: span.begin + 1.25 * length }, extent);
}
