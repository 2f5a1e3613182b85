// Which kind of track a selected window is added up over.
import type { TracePayload } from '../../../api/types';
import { Choice } from '../../../widgets/inputs/Choice';
import type { Sums } from '../state';

type Option = readonly [Sums, string];

export const SLICES: readonly Option[] = [
  ['all', 'All'],
  ['thread', 'Operators'],
  ['stream', 'Kernels'],
];
export const ALL: readonly Option[] = [...SLICES, ['counter', 'Counters']];

interface Props {
  payload: TracePayload;
  options: readonly Option[];
  chosen: Sums;
  onPick: (sums: Sums) => void;
}

/** The kinds of tracks that there are. */
export const SumsChoice = ({ payload, options, chosen, onPick }: Props) => (
  <Choice
    name="Tracks that are added up"
    value={chosen}
    options={options.filter(([sums]) => sums === 'all' || payload.tracks.some(({ kind }) => kind === sums))}
    onPick={onPick}
  />
);
