import type { OverlapPayload } from '../../api/types';
import { formatCount, formatDuration } from '../../base/format';
import { Sentence } from '../../widgets/Sentence';
import css from './index.module.css';

/** The recorder's totals next to those recomputed from its ranges. */
export function Recorded({ payload }: { payload: OverlapPayload }) {
  return (
    <>
      <p>
        <Sentence text={payload.recorded_headline} />
      </p>
      {payload.recorded.length > 0 && (
        <table className={css.figures} aria-label="Recorded and recomputed totals">
          <thead>
            <tr>
              <th>Mean per iteration</th>
              <th>Recorded</th>
              <th>Recomputed</th>
              <th>Iterations that differ</th>
              <th>Largest difference</th>
              <th className={css.words}>Why</th>
            </tr>
          </thead>
          <tbody>
            {payload.recorded.map(row => (
              <tr key={row.name}>
                <td>{row.name}</td>
                <td>{formatDuration(row.recorded_ns)}</td>
                <td>{formatDuration(row.recomputed_ns)}</td>
                <td>{formatCount(row.iterations)}</td>
                <td>{row.iterations > 0 && formatDuration(row.most_ns)}</td>
                <td className={css.words}>{row.iterations > 0 && (row.reason ?? 'unknown')}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </>
  );
}
