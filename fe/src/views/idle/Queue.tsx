import type { QueuesPayload } from '../../api/types';
import { formatCount, formatNumber, formatRatio, plural } from '../../base/format';
import { useView } from '../../state/queries';
import { useSelection } from '../../state/selection';
import { Choice } from '../../widgets/inputs/Choice';
import { Panel } from '../../widgets/Panel';
import { SavePicture } from '../../widgets/charts/SavePicture';
import { useState } from 'react';
import { AreaChart } from './AreaChart';
import { pickParams } from './select';
import css from './Panels.module.css';

/** Length of the launch queue over time, for one stream. */
export function Queue() {
  const { selection } = useSelection();
  const { run, worker, span, params } = selection;
  const [at, setAt] = useState('0');
  const requested = pickParams(params, 'step', 'device', 'stream');
  const answer = useView<QueuesPayload>('idle/queue', { run, worker, span }, requested);
  const payload = answer.data?.state === 'ready' ? answer.data.payload : undefined;
  const row = payload?.rows[Number(at)] ?? payload?.rows[0];
  return (
    <Panel
      title="Queue length"
      note="work launched but not started"
      actions={
        <>
          {payload && payload.rows.length > 1 && (
            <Choice
              name="Stream"
              value={String(payload.rows.indexOf(row!))}
              options={payload.rows
                .slice(0, 5)
                .map((each, i) => [String(i), `stream ${each.stream ?? '?'}`] as const)}
              onPick={setAt}
            />
          )}
          {row && <SavePicture name={`queue_of_stream_${row.stream ?? 'unknown'}`} />}
        </>
      }
      pending={!payload && !answer.error}
    >
      {answer.error && <p className="status error">{answer.error.message}</p>}
      {payload && !row && (
        <p className="dim">No launches were recorded here, so there is no queue length to show.</p>
      )}
      {payload && row && (
        <>
          <p className={css.finding}>
            Up to {plural(row.longest, 'launch', 'launches')}
            {row.mean !== null && `, ${formatNumber(row.mean)} on average`}
            {row.duration_ns > 0 && `; empty ${formatRatio(row.empty_ns / row.duration_ns)} of the time`}.
          </p>
          <AreaChart
            values={row.curve}
            edges={payload.edges_ns}
            color="var(--x-launch)"
            format={value => formatCount(Math.round(value))}
            label={`Queue length of stream ${row.stream ?? '?'}, up to ${row.longest}`}
          />
        </>
      )}
    </Panel>
  );
}
