// The window of time that is shown, and what panning and zooming make of it. ns since the trace's start.
import type { Span } from './tiles/store';

const SHORTEST = 50;
const MARGIN = 0.02;

/** All of the recording with a little air at both ends. */
export function whole(extent: Span): Span {
  const air = Math.max((extent.end - extent.begin) * MARGIN, SHORTEST);
  return { begin: Math.floor(extent.begin - air), end: Math.ceil(extent.end + air) };
}

/** What the page opens with: all slices, wherever marks and counters lie. */
export const opening = (payload: { first_begin_ns: number; first_end_ns: number }): Span =>
  whole({ begin: payload.first_begin_ns, end: payload.first_end_ns });

/** Within the recording, and not shorter than can be seen. */
export function clamp(window: Span, extent: Span): Span {
  const all = whole(extent);
  const span = Math.min(Math.max(window.end - window.begin, SHORTEST), all.end - all.begin);
  const middle = (window.begin + window.end) / 2;
  const begin = Math.min(Math.max(middle - span / 2, all.begin), all.end - span);
  return { begin, end: begin + span };
}

/** Closer (factor < 1) or farther, the instant `at` keeping its place on the screen. */
export function zoom(window: Span, factor: number, at: number, extent: Span): Span {
  const all = whole(extent);
  const span = Math.min(Math.max((window.end - window.begin) * factor, SHORTEST), all.end - all.begin);
  const share = (at - window.begin) / (window.end - window.begin);
  return clamp({ begin: at - share * span, end: at + (1 - share) * span }, extent);
}

export function pan(window: Span, by: number, extent: Span): Span {
  return clamp({ begin: window.begin + by, end: window.end + by }, extent);
}

/** Room around a span so that it fills two thirds of the width. */
export function around(span: Span, extent: Span): Span {
  const length = Math.max(span.end - span.begin, SHORTEST / 2);
  return clamp({ begin: span.begin - length / 4, end: span.begin + 1.25 * length }, extent);
}
