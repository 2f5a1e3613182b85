// The windows that the timeline has shown: the one before comes back, and the address moves the drawing.
import { useCallback, useEffect, useRef } from 'react';
import type { Controller } from '../../timeline/controller';
import type { Span } from '../../timeline/tiles/store';

/** More than anybody steps back. */
const KEPT = 50;

const same = (a: Span | null, b: Span): boolean => a !== null && a.begin === b.begin && a.end === b.end;

export interface Windows {
  /** The timeline came to rest at a window. */
  rested: (window: Span) => void;
  /** Shows the window before. */
  back: () => void;
}

/**
 * `shown` is the window of the address, or all. `rest` writes one into the address. When the address changes by
 * itself (the browser's way back, a link), the drawing follows.
 */
export function useWindows(
  controller: Controller | null,
  shown: Span,
  rest: (window: Span) => void,
): Windows {
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
    if (!same(now.shown, window)) {
      past.current = [...past.current.slice(-KEPT), now.shown];
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
  return { rested, back };
}
