// Details of a row: the distribution of its durations, its call stacks, and links.
import { useMemo, useState } from 'react';
import type {
  CallDistribution,
  OriginTimes,
  OperatorRow,
  OperatorsPayload,
  OperatorStacks,
} from '../../api/types';
import { formatCount, formatDuration, formatRatio, plural } from '../../base/format';
import { useView } from '../../state/queries';
import { useSelection } from '../../state/selection';
import { Button } from '../../widgets/inputs/Button';
import { FlameGraph } from '../../widgets/charts/flame/FlameGraph';
import { OriginList } from '../_shared/rows/OriginList';
import { RowActions } from '../_shared/rows/RowActions';
import { DurationHistogram } from '../_shared/rows/DurationHistogram';
import { Icon } from '../../widgets/Icon';
import { Select } from '../../widgets/inputs/Select';
import { SourceFrame, SourceSettingsMenu } from '../../widgets/SourceFrame';
import { stackTree } from './select';
import { Sentence } from '../../widgets/Sentence';
import { RowDetail } from '../../widgets/table/RowDetail';
import rowDetailCss from '../../widgets/table/RowDetail.module.css';

interface Props {
  row: OperatorRow;
  payload: OperatorsPayload;
  onClose: () => void;
}

const TIMES = [
  ['host', 'host time'],
  ['device', 'device time'],
] as const;

/** Most stacks that are listed. */
const MAX_STACKS = 50;

export function OperatorDetail({ row, payload, onClose }: Props) {
  const { selection, select } = useSelection();
  const { run, worker, span, params } = selection;
  const hasDevice = (row.device_total_ns ?? 0) > 0;
  const [selectedTime, setSelectedTime] = useState<'host' | 'device'>('host');
  const time = hasDevice ? selectedTime : 'host';
  const query = useMemo(() => {
    const { group_by, step, thread, phase, kernel, family } = params;
    const values = { group_by, step, thread, phase, kernel, family, event: String(row.event), time };
    return Object.fromEntries(
      Object.entries(values).filter((entry): entry is [string, string] => Boolean(entry[1])),
    );
  }, [params, row.event, time]);
  const selectors = { run, worker, span };
  const durations = useView<CallDistribution>('operators/instances', selectors, query);
  const callers = useView<OperatorStacks>('operators/stacks', selectors, query);
  const unfolded = useView<OriginTimes>('operators/origins', selectors, query, payload.has_compiled);
  const lines = unfolded.data?.state === 'ready' ? unfolded.data.payload.rows : [];
  const instances = durations.data?.state === 'ready' ? durations.data.payload : undefined;
  const stacks = callers.data?.state === 'ready' ? callers.data.payload : undefined;
  const tree = useMemo(() => (stacks ? stackTree(stacks, time) : undefined), [stacks, time]);
  const show = (event: number) => select({ view: 'trace', params: { event: String(event) } });
  return (
    <RowDetail label={`Details of ${row.name}`} title={row.name} mono onClose={onClose}>
      <p className="dim">
        {plural(row.calls, 'call')} · {formatDuration(row.host_total_ns)} on the host
        {row.device_self_ns !== null && ` · ${formatDuration(row.device_self_ns)} on the device`}
        {row.tc_self_ratio !== null && ` · ${formatRatio(row.tc_self_ratio)} Tensor Cores`}
        {!!row.tc_self_unknown &&
          ` · ${formatRatio(row.tc_self_unknown)} unknown (the kernel names don’t tell)`}
      </p>
      {row.input_shape && <p className={`mono ${rowDetailCss.shape}`}>{row.input_shape}</p>}
      <RowActions event={row.event} name={row.name} label="Copy the name">
        {hasDevice && (
          <Button onClick={() => select({ view: 'kernels', params: { operator: row.name } })}>
            <Icon name="kernel" size={14} /> Its kernels
          </Button>
        )}
      </RowActions>
      {lines.some(line => line.how === 'compile record') && (
        <>
          <h3>Source lines in it</h3>
          <OriginList rows={lines} />
        </>
      )}
      <h3>
        Time per call
        {hasDevice && (
          <Select label="" name="Time of the calls" value={time} options={TIMES} onChange={setSelectedTime} />
        )}
      </h3>
      <div className={rowDetailCss.spread}>
        {instances && instances.calls > 0 && (
          <DurationHistogram
            instances={instances}
            noun="call"
            of={row.name}
            color={time === 'device' ? 'var(--c-kernel)' : 'var(--c-cpu_exec)'}
            onOutlier={show}
          />
        )}
        {instances && instances.calls === 0 && <p className="dim">No call has {time} time.</p>}
      </div>
      <h3>
        Called from
        {stacks && stacks.stacks.length > 0 && (
          <span className="dim">
            {plural(stacks.stacks.length, 'stack')}, width is {time} time
          </span>
        )}
        {stacks && stacks.stacks.length > 0 && <SourceSettingsMenu />}
      </h3>
      {stacks?.reason && (
        <p className="dim">
          <Sentence text={stacks.reason} />
        </p>
      )}
      {tree && tree.value > 0 && (
        <FlameGraph
          root={tree}
          color={time === 'device' ? 'var(--c-kernel)' : 'var(--c-cpu_exec)'}
          format={formatDuration}
          maxHeight={260}
        />
      )}
      {stacks && stacks.bare > 0 && stacks.stacks.length > 0 && (
        <p className="dim">{plural(stacks.bare, 'call')} without a stack.</p>
      )}
      <ol className={rowDetailCss.stacks}>
        {stacks?.stacks.slice(0, MAX_STACKS).map(stack => (
          <li key={stack.event}>
            <details>
              <summary>
                <span className="mono clip">{stack.frames[0]?.text}</span>
                <span className="num">{formatCount(stack.calls)}×</span>
                <span className="num">
                  {formatDuration(time === 'host' ? stack.host_total_ns : stack.device_total_ns)}
                </span>
              </summary>
              {stack.frames.map((frame, i) => (
                // oxlint-disable-next-line react/no-array-index-key -- recursion repeats a frame
                <div key={i}>
                  <SourceFrame text={frame.text} file={frame.file} line={frame.line} />
                </div>
              ))}
              <Button look="text" onClick={() => show(stack.event)}>
                Show the first of these calls on the timeline
              </Button>
            </details>
          </li>
        ))}
      </ol>
      {stacks && stacks.stacks.length > MAX_STACKS && (
        <p className="dim">
          and {formatCount(stacks.stacks.length - MAX_STACKS)} more
          {tree && tree.value > 0 && ', all in the flame graph above'}
        </p>
      )}
      {payload.reasons.stacks && !stacks && (
        <p className="dim">
          <Sentence text={payload.reasons.stacks} />
        </p>
      )}
    </RowDetail>
  );
}
