import type { RunInfo } from '../api/types';

/** Return what a run is called in the picker: the name that a tracker recorded, before that of its folder. */
export const runLabel = ({ name, tracker_name }: Pick<RunInfo, 'name' | 'tracker_name'>): string =>
  tracker_name ? `${tracker_name} (${name})` : name;
