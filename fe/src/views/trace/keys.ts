// The keys of the timeline. They come before those of the page while no text is typed.
import { useEffect, useRef } from 'react';
import type { Controller } from '../../timeline/controller';

const ZOOM = 1.4;
export const PAN_PX = 120;

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
        'input, textarea, select, [role=dialog], [role=grid], [role=treegrid], [role=separator]',
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
