import { useState, type ReactNode } from 'react';
import { foldSmall } from '../../base/fold';
import { formatDuration, plural } from '../../base/format';
import { Button } from '../inputs/Button';

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
