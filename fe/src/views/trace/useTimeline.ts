// What a timeline is looking at, and how that changes: the same for one trace and for several ranks.
import { useComputedColorScheme } from '@mantine/core';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import type { TracePayload } from '../../api/types';
import { formatOffset, formatTimeOfDay } from '../../base/ticks';
import { useSelection } from '../../state/selection';
import type { Controller } from '../../timeline/controller';
import { arrange, laneBox, LANES, type Layout } from '../../timeline/draw/layout';
import type { Place } from '../../timeline/draw/overlay';
import type { Span } from '../../timeline/tiles/store';
import { opening } from '../../timeline/viewport';
import { readTraceState, writeTraceState, type Moment, type TraceState } from './state';
import { useWindows } from './useWindows';

/** Room below a slice that is scrolled into sight. */
const BELOW = 80;

export function useTimeline(payload: TracePayload) {
  const { selection, select } = useSelection();
  const { params } = selection;
  const state = useMemo(() => readTraceState(params), [params]);
  const theme = useComputedColorScheme('light');
  const [controller, setController] = useState<Controller | null>(null);
  const [loading, setLoading] = useState<boolean | null>(null);
  const change = useCallback(
    (next: Partial<TraceState>, quiet = false) =>
      select(now => ({ params: writeTraceState(now.params, next) }), quiet),
    [select],
  );
  const shown = state.window ?? opening(payload);
  const windows = useWindows(controller, shown, window => change({ window }, true));
  const middle = (shown.begin + shown.end) / 2;
  const origin =
    state.clock === 'step' ? (payload.steps.findLast(step => step.start_ns <= middle)?.start_ns ?? 0) : 0;
  return {
    state,
    change,
    shown,
    theme,
    controller,
    setController,
    windows,
    /** Whether slices are on their way; null before the first are asked for. */
    loading,
    setLoading,
    /** Where the ruler counts from. */
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
    /** Without a span, to all of it. */
    zoomTo: (span: Span | null) => (span ? controller?.zoomTo(span) : controller?.showAll()),
  };
}

export type Timeline = ReturnType<typeof useTimeline>;

export const spanOf = (place: Place): Span => ({ begin: place.start, end: place.start + place.duration });

interface Arranged {
  folded: readonly string[];
  deep: readonly number[];
  hidden: readonly number[];
  pinned: readonly number[];
  order: readonly number[];
  filter: string;
}

/** The rows of the tracks; made anew only when what arranges them says something else. */
export function useLayout(payload: TracePayload, arranged: Arranged): Layout {
  const key = JSON.stringify(arranged);
  return useMemo(() => {
    const { folded, deep, hidden, ...how } = JSON.parse(key) as Arranged;
    return arrange(payload, {
      folded: new Set(folded),
      deep: new Set(deep),
      hidden: new Set(hidden),
      ...how,
    });
  }, [payload, key]);
}

/** The tracks of which all lanes are drawn: those that were unfolded, and that of a slice that lies deep. */
export const deepTracks = (deep: readonly number[], selected: Place | null): readonly number[] =>
  selected && selected.depth >= LANES ? [...deep, selected.track] : deep;

/** Brings an event that a link leads to into sight; a click on what is in sight moves nothing. */
export function useInSight({ controller, state }: Timeline, layout: Layout, place: Place | null): void {
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
    // What the page was opened with fills the window, unless the link says which window; what is chosen later only
    // moves it where it must.
    if (opened ? !state.window && !state.area : outside) {
      controller.zoomTo(spanOf(place));
    }
    const row = layout.rows.find(each => each.track?.id === place.track);
    const scroller = document.querySelector('[data-part=tracks]');
    if (row && scroller) {
      const y = row.y + laneBox(row, place.depth).top;
      const room = scroller.clientHeight - BELOW;
      if (y < scroller.scrollTop || y > scroller.scrollTop + room) {
        scroller.scrollTop = Math.max(0, y - room / 2);
      }
    }
  }, [controller, place, state, layout]);
}
