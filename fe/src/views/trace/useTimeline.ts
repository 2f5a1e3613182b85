// State of a timeline, for one trace and for several ranks: the window and its history, the selection, the rows.
import { useComputedColorScheme } from '@mantine/core';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import type { TracePayload } from '../../api/types';
import { formatOffset, formatTimeOfDay } from '../../base/ticks';
import { useSelection } from '../../state/selection';
import type { Controller } from '../../timeline/controller';
import { buildLayout, laneBox, MAX_LANES, type Layout } from '../../timeline/draw/layout';
import type { SlicePlace } from '../../timeline/draw/overlay';
import type { Span } from '../../timeline/tiles/store';
import { extentOf, fullWindow, openingWindow } from '../../timeline/viewport';
import { type Moment, readTraceState, type TraceState, writeTraceState } from './state';

/** Space below a slice that is scrolled into view. */
const BELOW_PX = 80;

export function useTimeline(payload: TracePayload) {
  const { selection, select } = useSelection();
  const { params } = selection;
  const state = useMemo(() => readTraceState(params), [params]);
  const theme = useComputedColorScheme('light');
  const [controller, setController] = useState<Controller | null>(null);
  const [loading, setLoading] = useState<boolean | null>(null);
  const [hasDrawn, setHasDrawn] = useState(false);
  if (loading === false && !hasDrawn) {
    setHasDrawn(true);
  }
  const change = useCallback(
    (next: Partial<TraceState>, quiet = false) =>
      select(now => ({ params: writeTraceState(now.params, next) }), quiet),
    [select],
  );
  const shown = state.window ?? openingWindow(payload);
  const all = fullWindow(extentOf(payload));
  const windows = useWindowHistory(controller, shown, window => change({ window }, true));
  const middle = (shown.begin + shown.end) / 2;
  const origin =
    state.clock === 'step' ? (payload.steps.findLast(step => step.start_ns <= middle)?.start_ns ?? 0) : 0;
  return {
    state,
    change,
    shown,
    /** Whether the window shows the entire trace. */
    showsAll: shown.begin <= all.begin && shown.end >= all.end,
    theme,
    controller,
    setController,
    windows,
    /** Whether slices are being loaded; null before the first request. */
    loading,
    setLoading,
    /** Whether slices were drawn once; it stays so while those of another window are loaded. */
    hasDrawn,
    /** Origin of the ruler, ns. */
    origin,
    time: (ns: number) =>
      state.clock === 'wall' && payload.wall_ns !== null
        ? formatTimeOfDay(payload.wall_ns, ns)
        : formatOffset(ns - origin, Math.max((shown.end - shown.begin) / 1000, 1)),
    chooseEvent: (event: number | null) => {
      if (event !== state.event || state.moment) {
        change({ event, moment: null });
      }
    },
    chooseMoment: (moment: Moment) => change({ event: null, moment }),
    /** Zoom to a span, or to everything if it is null. */
    zoomTo: (span: Span | null) => (span ? controller?.zoomTo(span) : controller?.showAll()),
  };
}

export type TimelineState = ReturnType<typeof useTimeline>;

export const spanOf = (place: SlicePlace): Span => ({
  begin: place.start,
  end: place.start + place.duration,
});

interface TrackArrangement {
  folded: readonly string[];
  deep: readonly number[];
  hidden: readonly number[];
  pinned: readonly number[];
  order: readonly number[];
  filter: string;
}

/** Return the rows of the tracks, the same object while the arrangement is unchanged. */
export function useLayout(payload: TracePayload, arranged: TrackArrangement): Layout {
  const key = JSON.stringify(arranged);
  return useMemo(() => {
    const { folded, deep, hidden, ...how } = JSON.parse(key) as TrackArrangement;
    return buildLayout(payload, {
      folded: new Set(folded),
      deep: new Set(deep),
      hidden: new Set(hidden),
      ...how,
    });
  }, [payload, key]);
}

/** Return the tracks with all lanes drawn: the unfolded ones, and that of a selected slice below the first lanes. */
export const deepTracks = (deep: readonly number[], selected: SlicePlace | null): readonly number[] =>
  selected && selected.depth >= MAX_LANES ? [...deep, selected.track] : deep;

/** Bring the selected slice into view; if it is visible, nothing moves. */
export function useScrollIntoView(
  { controller, state }: TimelineState,
  layout: Layout,
  place: SlicePlace | null,
): void {
  const seen = useRef<string | null>(null);
  const linked = useRef(JSON.stringify([state.event, state.moment]));
  useEffect(() => {
    const chosen = JSON.stringify([state.event, state.moment]);
    if (!controller || !place || seen.current === chosen) {
      return;
    }
    const opened = seen.current === null && chosen === linked.current;
    seen.current = chosen;
    const { begin, end } = controller.window;
    const outside = place.start + place.duration < begin || place.start > end;
    // A slice in the opened link fills the window unless the link has one; later selections move only if necessary.
    if (opened ? !state.window && !state.area : outside) {
      controller.zoomTo(spanOf(place));
    }
    const row = layout.rows.find(each => each.track?.id === place.track);
    const scroller = document.querySelector('[data-part=tracks]');
    if (row && scroller) {
      const y = row.y + laneBox(row, place.depth).top;
      const room = scroller.clientHeight - BELOW_PX;
      if (y < scroller.scrollTop || y > scroller.scrollTop + room) {
        scroller.scrollTop = Math.max(0, y - room / 2);
      }
    }
  }, [controller, place, state, layout]);
}

/** Most windows to go back to. */
const MAX_HISTORY = 50;

const isSameSpan = (a: Span | null, b: Span): boolean => a !== null && a.begin === b.begin && a.end === b.end;

interface WindowHistory {
  /** Record the window at which the timeline came to rest. */
  onRest: (window: Span) => void;
  /** Show the previous window. */
  goBack: () => void;
}

/**
 * Keep the windows to go back to. `shown` is the window in the address, or everything; `rest` writes a window to the
 * address. If the address changes otherwise (the browser's Back, a link), the drawing follows.
 */
export function useWindowHistory(
  controller: Controller | null,
  shown: Span,
  rest: (window: Span) => void,
): WindowHistory {
  const past = useRef<Span[]>([]);
  const latest = useRef({ controller, shown, rest });
  useEffect(() => {
    latest.current = { controller, shown, rest };
  });
  const address = `${shown.begin}-${shown.end}`;
  const known = useRef(address);
  useEffect(() => {
    if (known.current !== address) {
      known.current = address;
      latest.current.controller?.showWindow(latest.current.shown);
    }
  }, [address]);
  const rested = useCallback((window: Span) => {
    const now = latest.current;
    known.current = `${window.begin}-${window.end}`;
    if (!isSameSpan(now.shown, window)) {
      past.current = [...past.current.slice(-MAX_HISTORY), now.shown];
    }
    now.rest(window);
  }, []);
  const back = useCallback(() => {
    const before = past.current.pop();
    if (before) {
      known.current = `${before.begin}-${before.end}`;
      latest.current.rest(before);
      latest.current.controller?.showWindow(before);
    }
  }, []);
  return { onRest: rested, goBack: back };
}
