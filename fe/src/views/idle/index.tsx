import { useMemo } from 'react';
import type { IdlePayload } from '../../api/types';
import { formatDuration } from '../../base/format';
import { Answer } from '../../widgets/Answer';
import { Panel } from '../../widgets/Panel';
import { Sentence } from '../../widgets/Sentence';
import { Term } from '../../widgets/Term';
import { Bandwidth } from './Bandwidth';
import { Causes } from './Causes';
import { Flame } from './Flame';
import { Launches } from './Launches';
import { Queue } from './Queue';
import { causeRows } from './select';
import { Sequences } from './Sequences';
import { StepBar } from './StepBar';
import css from './Panels.module.css';

export default function IdleView({ payload, crumb }: { payload: IdlePayload; crumb: string }) {
  const rows = useMemo(() => causeRows(payload), [payload]);
  const where = payload.stream === null ? '' : ` · stream ${payload.stream}`;
  return (
    <>
      <Answer
        crumb={`${crumb} · device ${payload.device}${where}`}
        why={<Sentence text={payload.explanation} keep={['device', 'stream', 'by']} />}
      >
        <Sentence text={payload.headline} keep={['device', 'stream', 'by']} />
      </Answer>
      <Panel
        title={titleOf(payload)}
        note={
          <>
            <Term id="idle" /> below, the idle time by cause; each part shows its longest gap
          </>
        }
      >
        <StepBar payload={payload} rows={rows} />
      </Panel>
      <Flame />
      <Causes payload={payload} rows={rows} />
      <div className={css.grid}>
        <Launches />
        <Queue />
        <Bandwidth />
        <Sequences />
      </div>
      <p className="dim">
        <Sentence text={payload.limits} />
      </p>
    </>
  );
}

function titleOf({ counted, duration_ns: ns, steps_recorded: recorded }: IdlePayload): string {
  if (!recorded) {
    return `The trace, ${formatDuration(ns)}`;
  }
  return counted === 1
    ? `The step, ${formatDuration(ns)}`
    : `An average step, ${formatDuration(ns / Math.max(counted, 1))}`;
}
