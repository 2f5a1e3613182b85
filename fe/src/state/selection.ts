import { createContext, useCallback, useContext, useEffect, useMemo, useRef, useState } from 'react';
import type { Selectors } from '../api/types';
import { onStateChange, readState, writeState } from '../base/browser/host';

/** The selected view and trace, all of it stored in the address. `params` belong to the view. */
export interface Selection extends Selectors {
  view: string;
  params: Record<string, string>;
}

const SELECTION_KEYS = ['view', 'run', 'worker', 'span'] as const;

export function toSelection(state: Record<string, string>): Selection {
  const { view, run, worker, span, ...params } = state;
  return { view: view ?? 'overview', run, worker, span, params };
}

export function fromSelection(selection: Selection): Record<string, string> {
  const state: Record<string, string> = {};
  for (const key of SELECTION_KEYS) {
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
   * Change the selection. A new run resets worker and span. A view that the user returns to has its last parameters,
   * unless the change sets them. `quiet` changes (dragging a window) replace the entry in the history instead of
   * adding one. A function gets the current selection, which may be newer than the drawn one.
   */
  select: (change: Change, quiet?: boolean) => void;
}

/** The last parameters of each view, by `placeOf`. */
type LastParams = ReadonlyMap<string, Record<string, string>>;

/** Identify a view of one trace; each has its own parameters. */
const placeOf = ({ view, run, worker, span }: Selection): string => [view, run, worker, span].join('\n');

/** Parameters that refer to events, tracks or times of one trace and mean nothing in another one. */
const TRACE_PARAMS: ReadonlySet<string> = new Set([
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

export function nextSelection(
  now: Selection,
  change: Partial<Selection>,
  lastParams: LastParams = new Map(),
): Selection {
  const next = { ...now, ...change };
  if (change.run !== undefined && change.run !== now.run) {
    next.worker = change.worker;
    next.span = change.span;
  } else if (change.worker !== undefined && change.worker !== now.worker) {
    next.span = change.span;
  }
  if (change.view !== undefined && change.view !== now.view) {
    next.params = change.params ?? lastParams.get(placeOf(next)) ?? {};
  } else if (change.params === undefined && placeOf(next) !== placeOf(now)) {
    next.params = Object.fromEntries(Object.entries(now.params).filter(([name]) => !TRACE_PARAMS.has(name)));
  }
  return next;
}

export function useSelectionState(): SelectionControl {
  const [selection, setSelection] = useState(() => toSelection(readState()));
  // The latest selection, because a change may follow another before that is drawn.
  const latest = useRef(selection);
  const lastParams = useRef(new Map([[placeOf(selection), selection.params]]));
  const show = useCallback((next: Selection) => {
    latest.current = next;
    lastParams.current.set(placeOf(next), next.params);
    setSelection(next);
  }, []);
  useEffect(() => onStateChange(() => show(toSelection(readState()))), [show]);
  const select = useCallback(
    (change: Change, quiet = false) => {
      const now = latest.current;
      const next = nextSelection(
        now,
        typeof change === 'function' ? change(now) : change,
        lastParams.current,
      );
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
