// The views this page draws, by slug; a new one is its folder and a line here.
import { lazy, type ComponentType } from 'react';
import type { IconName } from '../widgets/Icon';

export interface ViewProps {
  payload: never;
  crumb: string;
}

export interface ViewEntry {
  icon: IconName;
  Component: ComponentType<ViewProps>;
}

export const VIEWS: Record<string, ViewEntry> = {
  overview: { icon: 'overview', Component: lazy(() => import('./overview')) as ComponentType<ViewProps> },
};
