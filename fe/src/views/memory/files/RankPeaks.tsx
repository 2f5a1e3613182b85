// The snapshots of all ranks of a job: a row each, with what is in use at its peak by category.
import { memo } from 'react';
import type { Selectors, SnapshotRanks as RanksPayload } from '../../../api/types';
import { deviceName, formatBytes, formatSignedBytes } from '../../../base/format';
import { useView, useWorkers } from '../../../state/queries';
import { useSelection } from '../../../state/selection';
import { Button } from '../../../widgets/inputs/Button';
import { Panel } from '../../../widgets/Panel';
import { Sentence } from '../../../widgets/Sentence';
import { memoryCategoryColor } from './categories';
import css from './Snapshot.module.css';

/** Pixels of a row of the table. */
const ROW_HEIGHT = 29;

/** Rows that space is reserved for while ranks are read. */
const MOST_RESERVED = 16;

interface Props {
  selectors: Selectors;
}

/** Return the snapshots of all ranks of a run, undefined until they have been read. */
export function useSnapshotRanks({ run, span }: Selectors, enabled = true) {
  const { data, error } = useView<RanksPayload>('memory/ranks', { run, span }, {}, enabled);
  return { ranks: data?.state === 'ready' ? data.payload : undefined, error };
}

export const RankPeaks = memo(function SnapshotRanks({ selectors }: Props) {
  const { select } = useSelection();
  const { ranks, error } = useSnapshotRanks(selectors);
  const workers = useWorkers(selectors.run).data?.workers.length ?? 1;
  // The headline, the head of the table and a row for each rank: they come while the files are read.
  const reserved = { minHeight: error ? 0 : 66 + ROW_HEIGHT * Math.min(workers, MOST_RESERVED) };
  if (!ranks) {
    return (
      <Panel title="Ranks">
        <div style={reserved}>{error && <p className="dim">{error.message}</p>}</div>
      </Panel>
    );
  }
  const largest = Math.max(...ranks.rows.map(row => row.peak_bytes), 1);
  return (
    <Panel
      title="Ranks"
      note="in use at the peak, by category; the difference is from the median of the others"
    >
      <div style={reserved}>
        <p data-part="ranks-headline">
          <Sentence text={ranks.headline} />
        </p>
        <div className={css.scroll}>
          <table className={css.ranks} aria-label="Ranks">
            <thead>
              <tr>
                <th>Rank</th>
                <th>By category</th>
                <th>Peak</th>
                <th>Difference</th>
                <th>At the end</th>
                <th>Reserved</th>
                <th>Likely leaked</th>
                <th>Out of memory</th>
              </tr>
            </thead>
            <tbody>
              {ranks.rows.map((row, i) => (
                <tr
                  key={`${row.worker} ${row.device}`}
                  className={i === ranks.different ? css.different : ''}
                >
                  <td>
                    <Button look="link" onClick={() => select({ worker: row.worker, params: {} })}>
                      {row.worker}
                    </Button>
                    {row.device > 0 && <span className="dim"> {deviceName('CUDA', row.device)}</span>}
                  </td>
                  <td>
                    <span className={css.stack}>
                      {Object.entries(row.categories).map(([name, bytes]) => (
                        <i
                          key={name}
                          title={`${name}: ${formatBytes(bytes)}`}
                          style={{
                            width: `${(bytes / largest) * 100}%`,
                            background: memoryCategoryColor(name),
                          }}
                        />
                      ))}
                    </span>
                  </td>
                  <td>{formatBytes(row.peak_bytes)}</td>
                  <td>{row.difference_bytes === null ? '–' : formatSignedBytes(row.difference_bytes)}</td>
                  <td>{formatBytes(row.live_bytes)}</td>
                  <td>{formatBytes(row.reserved_bytes)}</td>
                  <td>{row.leaked_bytes === null ? '–' : formatBytes(row.leaked_bytes)}</td>
                  <td>{row.out_of_memory || ''}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
        {Object.entries(ranks.reasons).map(([worker, reason]) => (
          <p key={worker} className="dim">
            {worker}: <Sentence text={reason} />.
          </p>
        ))}
      </div>
    </Panel>
  );
});
