// How late each rank arrives at the collectives: the picture of the advice about a late rank.
import type { DistributedPayload } from '../../api/types';
import { formatDuration } from '../../base/format';
import { useView } from '../../state/queries';
import { latenessByRank } from './select';
import css from './RankPicture.module.css';

/** Most ranks that are drawn as a bar each. */
export const MAX_RANK_BARS = 16;

export interface RankPictureSource {
  /** How many there are; the height of so many bars is reserved. */
  count: number;
  run: string;
  span: string;
}

/** A bar for each rank: how long after the median rank it arrives at collectives, added up over an average step. */
export function RankPicture({ ranks: { count, run, span } }: { ranks: RankPictureSource }) {
  const { data } = useView<DistributedPayload>('distributed', { run, span }, {});
  const rows = data?.state === 'ready' ? latenessByRank(data.payload) : [];
  const most = Math.max(...rows.map(row => row.ns), 1);
  return (
    <dl
      className={css.ranks}
      style={{ minHeight: `calc(${count + 1} * var(--line))` }}
      data-part="late-ranks"
    >
      {rows.length > 0 && (
        <dt className={css.title}>time after the median rank, added up over a step’s collectives</dt>
      )}
      {rows.map(({ name, ns }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            <i style={{ width: `${(ns / most) * 100}%` }} />
          </dd>
          <dd className={ns === most ? 'strong' : 'dim'}>{formatDuration(ns)}</dd>
        </div>
      ))}
    </dl>
  );
}
