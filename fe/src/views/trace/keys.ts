// The keys of the timeline. They come before those of the page while no text is typed.
import { useEffect, useRef } from 'react';
import type { Controller } from '../../timeline/controller';

const ZOOM = 1.4;
export const PAN_PX = 120;

export const TRACE_KEYS: readonly [string, string][] = [
  ['W / S', 'zoom in / out'],
  ['A / D', 'earlier / later'],
  ['F', 'zoom to the selection, else show all'],
  ['M', 'mark the selected slice, or clear the marks'],
  ['P', 'unfold or fold the Python frames'],
  ['← →', 'the slice before / after on its track'],
  ['↑ ↓', 'the slice around / inside'],
  ['C', 'light the critical path, or nothing'],
  ['[ ]', 'back / ahead along the lit path, else along the flow'],
  ['/', 'find; Enter and Shift+Enter step through the hits'],
  ['Esc', 'clear the selection'],
  ['drag', 'select a window of time'],
  ['Shift + drag, Shift + wheel', 'pan'],
  ['Ctrl + wheel, pinch', 'zoom'],
];

/** Calls `handle` with each key; what it takes (true) goes no further. */
export function useKeys(handle: (event: KeyboardEvent) => boolean): void {
  const latest = useRef(handle);
  useEffect(() => {
    latest.current = handle;
  });
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      const elsewhere = target.closest?.(
        'input, textarea, select, [role=dialog], [role=grid], [role=treegrid]',
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

/** Zooming and panning, about the middle of the window. */
export function movement(controller: Controller): Record<string, () => unknown> {
  const middle = (controller.window.end - controller.window.begin) / controller.nsPerPixel / 2;
  return {
    w: () => controller.zoomBy(1 / ZOOM, middle),
    s: () => controller.zoomBy(ZOOM, middle),
    a: () => controller.panBy(-PAN_PX),
    d: () => controller.panBy(PAN_PX),
  };
}
