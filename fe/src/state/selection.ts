import { createContext, useCallback, useContext, useEffect, useMemo, useRef, useState } from 'react';
import type { Selectors } from '../api/types';
import { onStateChange, readState, writeState } from '../base/browser/host';

/** What the page shows; all of it is in the address. `params` belong to the view. */
export interface Selection extends Selectors {
  view: string;
  params: Record<string, string>;
}

const FIXED = ['view', 'run', 'worker', 'span'] as const;

export function toSelection(state: Record<string, string>): Selection {
  const { view, run, worker, span, ...params } = state;
  return { view: view ?? 'overview', run, worker, span, params };
}

export function fromSelection(selection: Selection): Record<string, string> {
  const state: Record<string, string> = {};
  for (const key of FIXED) {
    const value = selection[key];
    if (value !== undefined) {
      state[key] = value;
    }
  }
  return { ...state, ...selection.params };
}

type Change = Partial<Selection> | ((now: Selection) => Partial<Selection>);

export interface SelectionControl {
  selection: Selection;
  /**
   * Change something: a new run forgets worker and span; a view that is come back to is as it was left, unless the
   * change says its parameters. `quiet` changes (a window that
   * is dragged along) replace the entry in the history instead of adding one. A function is given what is selected at
   * this moment, which may be newer than what is drawn.
   */
  select: (change: Change, quiet?: boolean) => void;
}

/** How views were left, by what `placeOf` says. */
type Left = ReadonlyMap<string, Record<string, string>>;

/** A view of one trace: the parameters of another trace's say nothing about this one's. */
const placeOf = ({ view, run, worker, span }: Selection): string => [view, run, worker, span].join('\n');

/** What numbers the events, tracks and times of one trace: in another one it would mean strangers. */
const OF_ONE_TRACE: ReadonlySet<string> = new Set([
  'event',
  'moment',
  'at',
  'area',
  'marks',
  'pins',
  'folded',
  'deep',
  'hidden',
  'order',
]);

export function nextSelection(now: Selection, change: Partial<Selection>, left: Left = new Map()): Selection {
  const next = { ...now, ...change };
  if (change.run !== undefined && change.run !== now.run) {
    next.worker = change.worker;
    next.span = change.span;
  } else if (change.worker !== undefined && change.worker !== now.worker) {
    next.span = change.span;
  }
  if (change.view !== undefined && change.view !== now.view) {
    next.params = change.params ?? left.get(placeOf(next)) ?? {};
  } else if (change.params === undefined && placeOf(next) !== placeOf(now)) {
    next.params = Object.fromEntries(Object.entries(now.params).filter(([name]) => !OF_ONE_TRACE.has(name)));
  }
  return next;
}

export function useSelectionState(): SelectionControl {
  const [selection, setSelection] = useState(() => toSelection(readState()));
  // The latest selection: two changes in a row build on each other before anything is drawn.
  const latest = useRef(selection);
  const left = useRef(new Map([[placeOf(selection), selection.params]]));
  const show = useCallback((next: Selection) => {
    latest.current = next;
    left.current.set(placeOf(next), next.params);
    setSelection(next);
  }, []);
  useEffect(() => onStateChange(() => show(toSelection(readState()))), [show]);
  const select = useCallback(
    (change: Change, quiet = false) => {
      const now = latest.current;
      const next = nextSelection(now, typeof change === 'function' ? change(now) : change, left.current);
      show(next);
      const state = fromSelection(next);
      if (JSON.stringify(state) !== JSON.stringify(readState())) {
        writeState(state, !quiet);
      }
    },
    [show],
  );
  return useMemo(() => ({ selection, select }), [selection, select]);
}

export const SelectionContext = createContext<SelectionControl | null>(null);

export function useSelection(): SelectionControl {
  const control = useContext(SelectionContext);
  if (!control) {
    throw new Error('useSelection needs a SelectionContext');
  }
  return control;
}
