// The views this page draws, by slug; a new one is its folder and a line here.
import { lazy, type ComponentType } from 'react';
import type { Selectors } from '../api/types';
import type { IconName } from '../widgets/Icon';

export interface ViewProps {
  payload: never;
  crumb: string;
  /** The run that is shown, whether or not the address names it. */
  run: string;
  /** What a pair is compared with. */
  base: Required<Selectors> | null;
}

export interface ViewEntry {
  icon: IconName;
  Component: ComponentType<ViewProps>;
  /** The parameters in the address that the server takes; all others concern the page alone. */
  takes?: readonly string[];
}

export const VIEWS: Record<string, ViewEntry> = {
  overview: { icon: 'overview', Component: lazy(() => import('./overview')) as ComponentType<ViewProps> },
  operators: {
    icon: 'table',
    Component: lazy(() => import('./operators')) as ComponentType<ViewProps>,
    takes: ['group_by', 'step', 'thread', 'phase', 'kernel'],
  },
  kernels: {
    icon: 'kernel',
    Component: lazy(() => import('./kernels')) as ComponentType<ViewProps>,
    takes: ['group_by', 'step', 'device', 'stream', 'operator'],
  },
  trace: {
    icon: 'timeline',
    Component: lazy(() => import('./trace')) as ComponentType<ViewProps>,
    takes: ['python'],
  },
  modules: { icon: 'modules', Component: lazy(() => import('./modules')) as ComponentType<ViewProps> },
  memory: { icon: 'memory', Component: lazy(() => import('./memory')) as ComponentType<ViewProps> },
  distributed: {
    icon: 'distributed',
    Component: lazy(() => import('./distributed')) as ComponentType<ViewProps>,
  },
  diff: {
    icon: 'diff',
    Component: lazy(() => import('./diff')) as ComponentType<ViewProps>,
    takes: ['base_run', 'base_worker', 'base_span', 'min_effect'],
  },
  lightning: {
    icon: 'logo',
    Component: lazy(() => import('./modules/lightning')) as ComponentType<ViewProps>,
  },
};
