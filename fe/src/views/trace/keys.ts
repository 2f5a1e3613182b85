// Keys of the timeline; they take precedence over the page's unless text is being typed.
import { useEffect, useLayoutEffect, useRef } from 'react';
import type { Highlights } from '../../timeline/contract';
import type { Controller } from '../../timeline/controller';
import type { Direction } from '../../timeline/lookup';
import { spanOf, type TimelineState } from './useTimeline';

/** Actions by key. */
export type Keys = Record<string, () => unknown>;

/** Ratio by which a press of a key zooms. */
const ZOOM = 1.4;
/** Distance by which a press of a key pans, px. */
const PAN_PX = 120;

/** Call `handle` with each key; if it returns true, the key goes nowhere else. */
export function useKeys(handle: (event: KeyboardEvent) => boolean): void {
  const latest = useRef(handle);
  // Updated before the frame is visible: a key refers to what the user sees.
  useLayoutEffect(() => {
    latest.current = handle;
  });
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      const elsewhere = target.closest?.(
        'input, textarea, select, [role=dialog], [role=grid], [role=treegrid], [role=separator], [role=slider]',
      );
      if (elsewhere || event.ctrlKey || event.metaKey || event.altKey) {
        return;
      }
      if (latest.current(event)) {
        event.preventDefault();
        event.stopImmediatePropagation();
      }
    };
    document.addEventListener('keydown', onKey, true);
    return () => document.removeEventListener('keydown', onKey, true);
  }, []);
}

export const keyOf = ({ key }: KeyboardEvent): string => (key.length === 1 ? key.toLowerCase() : key);

/** Return the keys of every timeline, and those of this one. */
export function keysOf(
  timeline: TimelineState,
  highlights: Highlights,
  controller: Controller,
  extraKeys: Keys = {},
): Keys {
  const { state, change, chooseEvent, zoomTo } = timeline;
  const { selected, area } = highlights;
  const beside = (way: Direction, otherwise?: () => void) => () => {
    const found = selected && controller.adjacentSlice(selected, way);
    return found === null ? otherwise?.() : chooseEvent(found);
  };
  const marks = selected
    ? [...state.marks, selected.start].sort((a, b) => a - b)
    : area
      ? [area.begin, area.end]
      : [];
  return {
    ...movement(controller),
    f: () => zoomTo(selected ? spanOf(selected) : area),
    Backspace: timeline.windows.goBack,
    m: () => change({ marks }),
    ArrowLeft: beside('before', () => controller.panBy(-PAN_PX)),
    ArrowRight: beside('after', () => controller.panBy(PAN_PX)),
    // Without a selection these scroll.
    ...(selected && { ArrowUp: beside('out'), ArrowDown: beside('in') }),
    ...(state.event !== null || state.moment
      ? { Escape: () => change({ event: null, moment: null }) }
      : area && { Escape: () => change({ area: null }) }),
    ...extraKeys,
  };
}

/** Return the keys that zoom and pan, around the middle of the window. */
function movement(controller: Controller): Keys {
  const middle = (controller.window.end - controller.window.begin) / controller.nsPerPixel / 2;
  return {
    w: () => controller.zoomBy(1 / ZOOM, middle),
    s: () => controller.zoomBy(ZOOM, middle),
    a: () => controller.panBy(-PAN_PX),
    d: () => controller.panBy(PAN_PX),
  };
}
