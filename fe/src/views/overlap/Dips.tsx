import type { OverlapPayload } from '../../api/types';
import { formatCount, formatNumber } from '../../base/format';
import { Sentence } from '../../widgets/Sentence';
import { formatMetric } from './format';
import css from './index.module.css';

/** Iterations with little overlap, and what rocm-smi read in them and elsewhere. */
export function Dips({ payload }: { payload: OverlapPayload }) {
  const { headline, signals } = payload.dips;
  return (
    <>
      <p>
        <Sentence text={headline} />
      </p>
      {signals.length > 0 && (
        <table className={css.figures} aria-label="Readings in dips and elsewhere">
          <thead>
            <tr>
              <th>Reading</th>
              <th>In dips</th>
              <th>Elsewhere</th>
              <th className={css.words}>Unusual</th>
              <th>Unusual in dips</th>
              <th>Elsewhere</th>
              <th>By chance</th>
              <th className={css.words}>Evidence</th>
            </tr>
          </thead>
          <tbody>
            {signals.map(row => (
              <tr key={row.signal}>
                <td>{row.title}</td>
                <td>{formatMetric(row.dip_value, row.unit)}</td>
                <td>{formatMetric(row.other_value, row.unit)}</td>
                <td className={css.words}>{row.unusual}</td>
                <td>{`${formatCount(row.dips_with)} of ${formatCount(row.dips)}`}</td>
                <td>{`${formatCount(row.others_with)} of ${formatCount(row.others)}`}</td>
                <td>{formatChance(row.chance)}</td>
                <td className={css.words}>{row.strength}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </>
  );
}

const formatChance = (chance: number): string =>
  chance < 0.0001 ? 'below 0.01%' : `${formatNumber(100 * chance, 2)}%`;
