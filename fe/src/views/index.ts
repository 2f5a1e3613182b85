// The views this page draws, by slug; a new one is its folder and a line here.
import { lazy, type ComponentType } from 'react';
import type { Selectors } from '../api/types';
import type { IconName } from '../widgets/Icon';

export interface ViewProps {
  payload: never;
  crumb: string;
  /** The run that is shown, whether or not the address names it. */
  run: string;
  /** The trace of it that is shown, likewise; empty for a view of the whole run. */
  worker: string;
  span: string;
  /** What a pair is compared with. */
  base: Required<Selectors> | null;
}

export interface ViewEntry {
  icon: IconName;
  Component: ComponentType<ViewProps>;
  /** Fetches the code of the view, once. */
  load: () => Promise<unknown>;
  /** The parameters in the address that the server takes; all others concern the page alone. */
  takes: readonly string[];
  /** What the tab opens with, where that is not the whole view. */
  opens: string | undefined;
  /** The first answer derives much from the trace: it is asked for when the pointer nears the link. */
  slow: boolean;
}

type Module = { default: ComponentType<ViewProps> };

/** A view by its icon and the module whose default export draws it. */
function entry(
  icon: IconName,
  fetch: () => Promise<{ default: unknown }>,
  { takes = [], slow = false, opens }: Partial<Pick<ViewEntry, 'takes' | 'slow' | 'opens'>> = {},
): ViewEntry {
  let module: Module | undefined;
  const load = async () => (module ??= (await fetch()) as Module);
  // React shows a fallback for any promise, kept or not, and then holds the page back for 300 ms; what is here
  // already is handed over at once.
  const now = (known: Module) => ({ then: (take: (module: Module) => void) => take(known) });
  const Component = lazy(() => (module ? (now(module) as unknown as Promise<Module>) : load()));
  return { icon, Component, load, takes, slow, opens };
}

export const VIEWS: Record<string, ViewEntry> = {
  overview: entry('overview', () => import('./overview'), { opens: 'overview/preview' }),
  operators: entry('table', () => import('./operators'), {
    takes: ['group_by', 'step', 'thread', 'phase', 'kernel', 'family'],
  }),
  kernels: entry('kernel', () => import('./kernels'), {
    takes: ['group_by', 'step', 'device', 'stream', 'operator', 'family'],
  }),
  roofline: entry('roofline', () => import('./roofline'), {
    takes: ['group_by', 'step', 'device', 'peaks'],
    slow: true,
  }),
  trace: entry('timeline', () => import('./trace'), { takes: ['python'], slow: true }),
  idle: entry('clock', () => import('./idle'), { takes: ['by', 'step', 'device', 'stream'], slow: true }),
  critical_path: entry('swap', () => import('./critical_path'), { takes: ['what_if'], slow: true }),
  modules: entry('modules', () => import('./modules')),
  memory: entry('memory', () => import('./memory')),
  distributed: entry('distributed', () => import('./distributed')),
  overlap: entry('overlap', () => import('./overlap'), { takes: ['columns'] }),
  diff: entry('diff', () => import('./diff'), {
    takes: ['base_run', 'base_worker', 'base_span', 'also', 'base_also', 'min_effect'],
  }),
  lightning: entry('logo', () => import('./lightning')),
};
