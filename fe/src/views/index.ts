// The views of the page by slug; a new view is a folder and an entry here.
import { lazy, type ComponentType } from 'react';
import type { Selectors, ViewInfo } from '../api/types';
import type { IconName } from '../widgets/Icon';

export interface ViewProps {
  payload: never;
  crumb: string;
  /** The run shown, even if the address names none. */
  run: string;
  /** The worker shown; empty for a view of the entire run. */
  worker: string;
  span: string;
  /** The base of a comparison. */
  base: Required<Selectors> | null;
}

type Section = ViewInfo['section'];

interface ViewEntry {
  /** Its name and section in the navigation, until the server tells which views the trace has. */
  title: string;
  section: Section;
  icon: IconName;
  Component: ComponentType<ViewProps>;
  /** Load the code of the view once. */
  load: () => Promise<unknown>;
  /** The parameters in the address that are sent to the server; all others concern only the page. */
  serverParams: readonly string[];
  /** The slug of a smaller payload that the tab opens with, if there is one. */
  initialSlug: string | undefined;
  /** Whether the first answer takes long to compute, so it is prefetched when the pointer is on the link. */
  slow: boolean;
}

type ViewModule = { default: ComponentType<ViewProps> };

/** Return the entry of a view whose module exports its component as default. */
function defineView(
  [title, section]: readonly [title: string, section: Section],
  icon: IconName,
  importModule: () => Promise<{ default: unknown }>,
  {
    serverParams = [],
    slow = false,
    initialSlug,
  }: Partial<Pick<ViewEntry, 'serverParams' | 'slow' | 'initialSlug'>> = {},
): ViewEntry {
  let module: ViewModule | undefined;
  const load = async () => (module ??= (await importModule()) as ViewModule);
  // React shows a fallback for any promise, even a resolved one, and then holds the page back for 300 ms. A loaded
  // module is therefore returned by a thenable that resolves at once.
  const resolved = (loaded: ViewModule) => ({
    then: (resolve: (module: ViewModule) => void) => resolve(loaded),
  });
  const Component = lazy(() => (module ? (resolved(module) as unknown as Promise<ViewModule>) : load()));
  return { title, section, icon, Component, load, serverParams, slow, initialSlug };
}

const TIME = 'Where the time goes';
const RESOURCES = 'Resources';

/** In the order of the navigation. */
export const VIEWS: Record<string, ViewEntry> = {
  overview: defineView(['Overview', ''], 'overview', () => import('./overview'), {
    initialSlug: 'overview/preview',
  }),
  operators: defineView(['Operators', TIME], 'table', () => import('./operators'), {
    serverParams: ['group_by', 'step', 'thread', 'phase', 'kernel', 'family'],
  }),
  kernels: defineView(['Kernels', TIME], 'kernel', () => import('./kernels'), {
    serverParams: ['group_by', 'step', 'device', 'stream', 'operator', 'family', 'origin'],
  }),
  roofline: defineView(['Roofline', TIME], 'roofline', () => import('./roofline'), {
    serverParams: ['group_by', 'step', 'device', 'peaks'],
    slow: true,
  }),
  trace: defineView(['Trace', TIME], 'timeline', () => import('./trace'), {
    serverParams: ['python'],
    slow: true,
  }),
  idle: defineView(['Idle time', TIME], 'clock', () => import('./idle'), {
    serverParams: ['by', 'step', 'device', 'stream'],
    slow: true,
  }),
  critical_path: defineView(['Critical path', TIME], 'swap', () => import('./critical_path'), {
    serverParams: ['what_if'],
    slow: true,
  }),
  modules: defineView(['Modules', TIME], 'modules', () => import('./modules')),
  origins: defineView(['Origins', TIME], 'search', () => import('./origins'), {
    serverParams: ['capture', 'first', 'limit'],
    slow: true,
  }),
  lightning: defineView(['Lightning', TIME], 'logo', () => import('./lightning')),
  serving: defineView(['Serving', TIME], 'serving', () => import('./serving')),
  distributed: defineView(['Distributed', RESOURCES], 'distributed', () => import('./distributed')),
  overlap: defineView(['Overlap', RESOURCES], 'overlap', () => import('./overlap'), {
    serverParams: ['columns'],
  }),
  memory: defineView(['Memory', RESOURCES], 'memory', () => import('./memory')),
  hangs: defineView(['Hangs', RESOURCES], 'hourglass', () => import('./hangs')),
  diff: defineView(['Diff', 'Compare'], 'diff', () => import('./diff'), {
    serverParams: ['base_run', 'base_worker', 'base_span', 'also', 'base_also', 'min_effect'],
  }),
};
