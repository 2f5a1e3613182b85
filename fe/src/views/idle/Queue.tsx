import type { QueuesPayload } from '../../api/types';
import { formatCount, formatNumber, formatRatio } from '../../base/format';
import { useView } from '../../state/queries';
import { useSelection } from '../../state/selection';
import { Choice } from '../../widgets/inputs/Choice';
import { Panel } from '../../widgets/Panel';
import { SavePicture } from '../../widgets/charts/SavePicture';
import { useState } from 'react';
import { Curve } from './Curve';
import { chosen } from './select';
import css from './Panels.module.css';

/** Work that is launched and has not started, stream by stream. */
export function Queue() {
  const { selection } = useSelection();
  const { run, worker, span, params } = selection;
  const [at, setAt] = useState('0');
  const asked = chosen(params, 'step', 'device', 'stream');
  const answer = useView<QueuesPayload>('idle/queue', { run, worker, span }, asked);
  const found = answer.data?.state === 'ready' ? answer.data.payload : undefined;
  const row = found?.rows[Number(at)] ?? found?.rows[0];
  return (
    <Panel
      title="Queue length"
      note="work launched and not yet started"
      actions={
        <>
          {found && found.rows.length > 1 && (
            <Choice
              name="Stream"
              value={String(found.rows.indexOf(row!))}
              options={found.rows
                .slice(0, 5)
                .map((each, i) => [String(i), `stream ${each.stream ?? '?'}`] as const)}
              onPick={setAt}
            />
          )}
          {row && <SavePicture name={`queue_of_stream_${row.stream ?? 'unknown'}`} />}
        </>
      }
    >
      {answer.error && <p className="status error">{answer.error.message}</p>}
      {found && !row && <p className="dim">No launch of the recorded work is recorded.</p>}
      {found && row && (
        <>
          <p className={css.say}>
            At most {formatCount(row.longest)}
            {row.mean !== null && `, ${formatNumber(row.mean)} on average`}
            {row.duration_ns > 0 && `; empty ${formatRatio(row.empty_ns / row.duration_ns)} of the time`}.
          </p>
          <Curve
            values={row.curve}
            edges={found.edges_ns}
            color="var(--x-launch)"
            format={value => formatCount(Math.round(value))}
            label={`Queue length of stream ${row.stream ?? '?'}, at most ${row.longest}`}
          />
        </>
      )}
    </Panel>
  );
}
