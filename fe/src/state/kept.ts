// What a view keeps for when it is come back to, beside its parameters: how far it is scrolled, what is unfolded.
import {
  useCallback,
  useLayoutEffect,
  useState,
  type Dispatch,
  type RefObject,
  type SetStateAction,
} from 'react';
import { useSelection } from './selection';

const places = new Map<string, number>();
const states = new Map<string, unknown>();

/** Where a part of a view stands: another trace's says nothing about this one's. */
function useKey(part: string): string {
  const { view, run, worker, span } = useSelection().selection;
  return [view, run, worker, span, part].join('\n');
}

/** State of a part of a view that is as it was left when the view is come back to. */
export function useKept<T>(part: string, first: () => T): [T, Dispatch<SetStateAction<T>>] {
  const key = useKey(part);
  const [state, setState] = useState<T>(() => (states.has(key) ? (states.get(key) as T) : first()));
  const set = useCallback(
    (next: SetStateAction<T>) =>
      setState(now => {
        const value = typeof next === 'function' ? (next as (now: T) => T)(now) : next;
        states.set(key, value);
        return value;
      }),
    [key],
  );
  return [state, set];
}

/** Keeps how far a part of a view is scrolled while another view is shown; until it is `drawn` there is nothing to scroll. */
export function useKeptScroll(element: RefObject<HTMLElement | null>, part: string, drawn = true): void {
  const whole = useKey(part);
  const key = drawn ? whole : null;
  useLayoutEffect(() => {
    const scroller = element.current;
    if (!scroller || key === null) {
      return undefined;
    }
    const remember = () => places.set(key, scroller.scrollTop);
    scroller.scrollTo({ top: places.get(key) ?? 0 });
    scroller.addEventListener('scroll', remember, { passive: true });
    return () => scroller.removeEventListener('scroll', remember);
  }, [element, key]);
}
