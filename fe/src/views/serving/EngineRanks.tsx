import type { ServingRankRow, ServingRanks } from '../../api/types';
import { formatCount, formatDuration, formatNumber } from '../../base/format';
import { useView, useWorkers } from '../../state/queries';
import { Panel } from '../../widgets/Panel';
import { ScrollArea } from '../../widgets/ScrollArea';
import { Sentence } from '../../widgets/Sentence';
import css from './index.module.css';

interface Props {
  run: string;
  span: string;
}

/** The ranks of the run that were recorded beside this one: which of them run the same iterations, and who is slow. */
export function EngineRanks({ run, span }: Props) {
  const workers = useWorkers(run).data?.workers;
  const several = workers === undefined || workers.length > 1;
  const answer = useView<ServingRanks>('serving/ranks', { run, span }, {}, several);
  const ranks = answer.data?.state === 'ready' ? answer.data.payload : null;
  if (!several || ranks === null || ranks.ranks.length < 2) {
    return null;
  }
  return (
    <Panel title="Ranks" note="mean of the iterations that all ranks of an engine recorded">
      <p className={css.ranksHeadline}>
        <Sentence text={ranks.headline} />
      </p>
      <ScrollArea label="Ranks">
        <table className={css.table} data-part="ranks">
          <thead>
            <tr>
              <th>Rank</th>
              {['Engine', 'Iterations', 'Output', 'Own kernels', 'Communication'].map(title => (
                <th key={title} className="num">
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {ranks.ranks.slice(0, MAX_ROWS).map(row => (
              <Row key={row.worker} row={row} ranks={ranks} />
            ))}
          </tbody>
        </table>
      </ScrollArea>
    </Panel>
  );
}

/** Most ranks that are listed. */
const MAX_ROWS = 64;

function Row({ row, ranks }: { row: ServingRankRow; ranks: ServingRanks }) {
  const engine = ranks.engines[row.engine]!;
  return (
    <tr>
      <td>
        {row.rank === null ? row.worker : `rank ${row.rank}`}
        {engine.slowest === row.worker && <strong> slowest</strong>}
      </td>
      <td className="num">{row.engine}</td>
      <td className="num">{formatCount(engine.iterations)}</td>
      <td className="num">
        {engine.output_tokens_per_s === null
          ? 'unknown'
          : `${formatNumber(engine.output_tokens_per_s)} tokens/s`}
      </td>
      <td className="num">{formatDuration(row.own_ns)}</td>
      <td className="num">{formatDuration(row.communication_ns)}</td>
    </tr>
  );
}
