// View state that survives switching tabs, in addition to its parameters: scroll position and expanded rows.
import {
  useCallback,
  useLayoutEffect,
  useState,
  type Dispatch,
  type RefObject,
  type SetStateAction,
} from 'react';
import { sessionValues } from '../base/browser/sessionValues';
import { useSelection } from './selection';

/** Return the key of what is remembered of a part of a view; each trace has its own. */
function useKey(kind: 'state' | 'scroll', part: string): string {
  const { view, run, worker, span } = useSelection().selection;
  return [kind, view, run, worker, span, part].join('\n');
}

/** State of a part of a view that is restored when the user returns to the view. */
export function useRestoredState<T>(part: string, initial: () => T): [T, Dispatch<SetStateAction<T>>] {
  const key = useKey('state', part);
  const [state, setState] = useState<T>(() =>
    sessionValues.has(key) ? (sessionValues.get(key) as T) : initial(),
  );
  const set = useCallback(
    (next: SetStateAction<T>) =>
      setState(now => {
        const value = typeof next === 'function' ? (next as (now: T) => T)(now) : next;
        sessionValues.set(key, value);
        return value;
      }),
    [key],
  );
  return [state, set];
}

/** Restore the scroll position of a part of a view when the user returns; nothing can be scrolled until `drawn`. */
export function useRestoredScroll(element: RefObject<HTMLElement | null>, part: string, drawn = true): void {
  const stateKey = useKey('scroll', part);
  const key = drawn ? stateKey : null;
  useLayoutEffect(() => {
    const scroller = element.current;
    if (!scroller || key === null) {
      return undefined;
    }
    const save = () => sessionValues.set(key, scroller.scrollTop);
    scroller.scrollTo({ top: (sessionValues.get(key) as number | undefined) ?? 0 });
    scroller.addEventListener('scroll', save, { passive: true });
    return () => scroller.removeEventListener('scroll', save);
  }, [element, key]);
}
