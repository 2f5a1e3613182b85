import { useMemo } from 'react';
import type { IdlePayload, Selectors } from '../../api/types';
import { deviceName, formatDuration } from '../../base/format';
import { useView } from '../../state/queries';
import { useSelection } from '../../state/selection';
import { Answer } from '../../widgets/Answer';
import { HowWeKnow, explainedShare } from '../../widgets/HowWeKnow';
import { Panel } from '../../widgets/Panel';
import { SavePicture } from '../../widgets/charts/SavePicture';
import { ReservedWidth } from '../../widgets/Pending';
import { Sentence } from '../../widgets/Sentence';
import { Story } from '../../widgets/Story';
import { Term } from '../../widgets/Term';
import { Bandwidth } from './Bandwidth';
import { Causes } from './Causes';
import { IdleFlameGraph } from './IdleFlameGraph';
import { Launches } from './Launches';
import { Queue } from './Queue';
import { causeRows, pickParams } from './select';
import { Sequences } from './Sequences';
import { IdleBar } from './IdleBar';
import css from './Panels.module.css';

/** Letters reserved below the bar until the other ranks are compared. */
const RANKS_LETTERS = 150;

export default function IdleView({
  payload: alone,
  crumb,
  ...selectors
}: { payload: IdlePayload; crumb: string } & Required<Selectors>) {
  const { payload, comparing } = useRankComparison(alone, selectors);
  const rows = useMemo(() => causeRows(payload), [payload]);
  const where = payload.stream === null ? '' : ` · stream ${payload.stream}`;
  return (
    <>
      <Story coming={comparing}>
        <Answer
          crumb={`${crumb} · ${deviceName(payload.device_type, payload.device)}${where}`}
          why={<Sentence text={payload.explanation} keepParams={['device', 'stream', 'by']} />}
        >
          <Sentence text={payload.headline} keepParams={['device', 'stream', 'by']} />
        </Answer>
        <Panel
          title={titleOf(payload)}
          note={
            <>
              <Term id="idle" /> by cause below; click a part to open its longest gap
            </>
          }
          actions={
            <SavePicture
              name={`idle_of_device_${payload.device}${payload.stream === null ? '' : `_stream_${payload.stream}`}`}
            />
          }
        >
          <IdleBar payload={payload} rows={rows} title={titleOf(payload)} />
          {payload.beside.length > 0 && (
            <p className={css.beside} data-part="beside">
              <Sentence text={payload.beside} />
            </p>
          )}
          {comparing && payload.beside.length === 0 && (
            <p className={css.beside}>
              <ReservedWidth letters={RANKS_LETTERS} />
            </p>
          )}
        </Panel>
      </Story>
      <Causes payload={payload} rows={rows} />
      <IdleFlameGraph />
      <div className={css.grid}>
        <Launches />
        <Queue />
        <Bandwidth />
        <Sequences />
      </div>
      {payload.limits.length > 0 && (
        <HowWeKnow confidence={explainedShare(payload.explained)}>
          <p>
            <Sentence text={payload.limits} />
          </p>
        </HowWeKnow>
      )}
    </>
  );
}

/** Return the payload with waits for other ranks, once their traces are read. */
function useRankComparison(
  alone: IdlePayload,
  { run, worker, span }: Required<Selectors>,
): { payload: IdlePayload; comparing: boolean } {
  const { params } = useSelection().selection;
  const exposed = alone.exposed_communication_ns > 0 && alone.stream === null;
  const { data, error, isPlaceholderData } = useView<IdlePayload>(
    'idle/ranks',
    { run, worker, span },
    pickParams(params, 'step', 'device'),
    exposed,
  );
  if (data?.state !== 'ready' || isPlaceholderData) {
    return { payload: alone, comparing: exposed && !error };
  }
  const { steps, communication, waits_for, beside, limits, reasons } = data.payload;
  return {
    payload: { ...alone, steps, communication, waits_for, beside, limits, reasons },
    comparing: data.loading > 0,
  };
}

function titleOf(payload: IdlePayload): string {
  const { counted, duration_ns: ns, steps, steps_recorded: recorded, step_noun: noun } = payload;
  if (!recorded) {
    return `The trace, ${formatDuration(ns)}`;
  }
  if (counted > 1 && steps.some(step => step.complete && !step.typical)) {
    return `A typical ${noun}, ${formatDuration(ns / counted)}`;
  }
  return counted === 1
    ? `The ${noun}, ${formatDuration(ns)}`
    : `An average ${noun}, ${formatDuration(ns / Math.max(counted, 1))}`;
}
