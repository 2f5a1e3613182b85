import type { ServingOrigins } from '../../api/types';
import { formatDuration, formatRatio } from '../../base/format';
import { useView } from '../../state/queries';
import { Panel } from '../../widgets/Panel';
import { ScrollArea } from '../../widgets/ScrollArea';
import { Sentence } from '../../widgets/Sentence';
import css from './index.module.css';

/** Rows that are shown; the answer has more. */
const MAX_ROWS = 16;

interface Props {
  run: string;
  worker: string;
  span: string;
  onOpen: (event: number) => void;
}

/** What of the model takes the kernel time of an iteration: kernels of replayed graphs by what was captured. */
export function Origins({ run, worker, span, onOpen }: Props) {
  const answer = useView<ServingOrigins>('serving/origins', { run, worker, span }, {}, true);
  const work = answer.data?.state === 'ready' ? answer.data.payload : null;
  if (work === null || work.rows.length === 0) {
    return null;
  }
  const shown = work.rows.slice(0, MAX_ROWS);
  const rest = work.kernel_ns - shown.reduce((sum, row) => sum + row.time_ns, 0);
  return (
    <Panel
      title={`Kernels of ${work.phase === null ? 'an' : `a ${work.phase}`} iteration by module and operator`}
      note={`${formatDuration(work.kernel_ns)} on average`}
    >
      <p className={css.ranksHeadline}>
        <Sentence text={work.headline} />
      </p>
      <ScrollArea label="Kernels by module and operator">
        <table className={css.table} data-part="origins">
          <thead>
            <tr>
              <th>Kernels</th>
              <th>Module</th>
              <th>Operator</th>
              <th className="num">Time</th>
              <th className="num">Share</th>
            </tr>
          </thead>
          <tbody>
            {shown.map(row => (
              <tr key={row.event} onDoubleClick={() => onOpen(row.event)}>
                <td>{row.family}</td>
                <td className={row.module === null ? 'dim' : undefined}>
                  {row.module ?? row.reason ?? 'unknown'}
                </td>
                <td className={row.operator === null ? 'dim' : undefined}>{row.operator ?? 'unknown'}</td>
                <td className="num">{formatDuration(row.time_ns)}</td>
                <td className="num">{formatRatio(row.share)}</td>
              </tr>
            ))}
            {rest > 0.5 && (
              <tr>
                <td className="dim" colSpan={3}>
                  all others
                </td>
                <td className="num">{formatDuration(rest)}</td>
                <td className="num">{formatRatio(rest / work.kernel_ns)}</td>
              </tr>
            )}
          </tbody>
        </table>
      </ScrollArea>
    </Panel>
  );
}
