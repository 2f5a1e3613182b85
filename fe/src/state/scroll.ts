import { useLayoutEffect, type RefObject } from 'react';
import { useSelection } from './selection';

const kept = new Map<string, number>();

/** Keeps how far a part of a view is scrolled while another view is shown; until it is `drawn` there is nothing to scroll. */
export function useKeptScroll(element: RefObject<HTMLElement | null>, part: string, drawn = true): void {
  const { view, run, worker, span } = useSelection().selection;
  const key = drawn ? [view, run, worker, span, part].join('\n') : null;
  useLayoutEffect(() => {
    const scroller = element.current;
    if (!scroller || key === null) {
      return undefined;
    }
    const remember = () => kept.set(key, scroller.scrollTop);
    scroller.scrollTo({ top: kept.get(key) ?? 0 });
    scroller.addEventListener('scroll', remember, { passive: true });
    return () => scroller.removeEventListener('scroll', remember);
  }, [element, key]);
}
