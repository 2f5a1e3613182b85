import { useState, type ReactNode } from 'react';
import { formatDuration, plural } from '../../base/format';
import { Button } from '../inputs/Button';

/** Most entries of a folded legend, and the smallest share of the whole for one of its own. */
const MAX_ENTRIES = 8;
const MIN_SHARE = 0.001;

interface Props<T> {
  entries: readonly T[];
  /** The time of an entry, ns. */
  timeOf: (entry: T) => number;
  /** What the entries are parts of, ns. */
  total: number;
  children: (entry: T) => ReactNode;
}

/** The entries of a legend; those too small to see are one, "8 others 0.9 ms", that unfolds. */
export function FoldedLegend<T>({ entries, timeOf, total, children }: Props<T>) {
  const [unfolded, setUnfolded] = useState(false);
  const { shown, others } = foldSmall(entries, timeOf, total);
  const time = others.reduce((sum, entry) => sum + timeOf(entry), 0);
  return (
    <>
      {(unfolded ? entries : shown).map(children)}
      {others.length > 0 && (
        // A late answer changes what it sums up: it is another entry then, and nothing is seen to move.
        <li key={`${shown.length}/${others.length}`}>
          <Button look="link" aria-expanded={unfolded} onClick={() => setUnfolded(!unfolded)}>
            {unfolded ? 'Show fewer' : plural(others.length, 'other')}
          </Button>{' '}
          {!unfolded && <b>{formatDuration(time)}</b>}
        </li>
      )}
    </>
  );
}

interface Folded<T> {
  shown: T[];
  others: T[];
}

/** Return the entries that are large enough, in their order, and the others; a single other one is shown too. */
export function foldSmall<T>(entries: readonly T[], valueOf: (entry: T) => number, total: number): Folded<T> {
  const largest = entries
    .toSorted((a, b) => valueOf(b) - valueOf(a))
    .slice(0, MAX_ENTRIES)
    .filter(entry => valueOf(entry) >= MIN_SHARE * total);
  const shownEntries = new Set(largest);
  const others = entries.filter(entry => !shownEntries.has(entry));
  return others.length < 2
    ? { shown: [...entries], others: [] }
    : { shown: entries.filter(entry => shownEntries.has(entry)), others };
}
