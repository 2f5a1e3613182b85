import { useMemo } from 'react';
import type { IdlePayload } from '../../api/types';
import { deviceName, formatDuration, formatRatio, plural, roundUp } from '../../base/format';
import { useSelection } from '../../state/selection';
import { useTableState } from '../../state/table';
import { Select } from '../../widgets/inputs/Select';
import { Name } from '../../widgets/Name';
import type { Column } from '../../widgets/table/columns';
import { DataTable } from '../../widgets/table/DataTable';
import splitCss from '../../widgets/table/Split.module.css';
import { causeColor } from '../../base/causes';
import { useStepWords } from '../../state/steps';
import { StreamFilter } from '../_shared/filters';
import { Gaps } from './Gaps';
import css from './Panels.module.css';
import { notDrainedText, onTimeline, perStep, type CauseRow } from './select';

const BY = [
  ['cause', 'host slice'],
  ['emptied_by', 'call that drained the queue'],
  ['operator', 'operator'],
  ['module', 'module'],
  ['frame', 'source line'],
] as const;

/** Table of causes with their subjects below; every row opens its gaps. */
export function Causes({ payload, rows }: { payload: IdlePayload; rows: CauseRow[] }) {
  const { selection, select } = useSelection();
  const say = useStepWords();
  const { params } = selection;
  const table = useTableState({ id: 'time', descending: true });
  const idle = payload.idle_ns / Math.max(payload.counted, 1);
  const columns = useMemo(() => columnsOf(payload, idle), [payload, idle]);
  const keys = useMemo(
    () => new Map(rows.flatMap(row => [row, ...(row.below ?? [])]).map(row => [row.key, row])),
    [rows],
  );
  const open = params.select === undefined ? undefined : keys.get(params.select);
  const setParams = (change: Record<string, string>) => {
    const next = Object.entries({ ...params, ...change }).filter(([, value]) => value !== '');
    select({ params: Object.fromEntries(next) });
  };
  const devices = [...new Set(payload.streams.map(({ device }) => device))];
  const streams = payload.streams.filter(({ device }) => device === payload.device);
  const steps = [...new Set(payload.steps.filter(step => step.complete).map(step => step.name))];
  return (
    <div className={`${splitCss.split} ${css.causes} ${open ? splitCss.withDetail : ''}`}>
      <DataTable
        name="idle"
        rows={rows}
        columns={columns}
        rowKey={keyOf}
        searchText={row => `${row.title}\n${row.fullTitle}\n${drainedBy(row)}`}
        childRows={childrenOf}
        initiallyExpanded={rows.slice(0, 1).map(keyOf)}
        selected={params.select}
        onSelect={row => setParams({ select: row ? row.key : '' })}
        onOpen={row => select({ view: 'trace', params: onTimeline(payload, row) })}
        {...table}
        placeholder="Filter causes"
        noun="row"
        before={
          <>
            <Select
              label="Below a cause"
              value={payload.by}
              options={BY}
              onChange={by => setParams({ by, select: '' })}
            />
            {steps.length > 1 && (
              <Select
                label={say('Step')}
                value={params.step ?? ''}
                options={[
                  ['', `average of ${Math.max(payload.complete_steps, steps.length)}`],
                  ...steps.map(step => [step, step] as const),
                ]}
                onChange={step => setParams({ step, select: '' })}
              />
            )}
            {devices.length > 1 && (
              <Select
                label="Device"
                value={String(payload.device)}
                options={devices.map(id => [String(id), deviceName(payload.device_type, id)] as const)}
                onChange={device => setParams({ device, stream: '', select: '' })}
              />
            )}
            <StreamFilter
              streams={streams}
              value={params.stream}
              onChange={stream => setParams({ stream, select: '' })}
            />
          </>
        }
        empty={
          payload.duration_ns > 0
            ? `No gaps: the ${payload.stream === null ? 'device' : 'stream'} is never idle here.`
            : 'No time is counted here, so gaps are unknown.'
        }
        foot={`${plural(payload.gaps, 'gap')}; the causes sum to ${formatDuration(idle)} of idle time${perStep(payload)}`}
      />
      {open && <Gaps key={open.key} payload={payload} row={open} onClose={() => setParams({ select: '' })} />}
    </div>
  );
}

const keyOf = (row: CauseRow): string => row.key;
const childrenOf = (row: CauseRow): CauseRow[] | undefined => row.below;

function columnsOf(payload: IdlePayload, idle: number): Column<CauseRow>[] {
  return [
    {
      id: 'cause',
      title: 'Cause, then subject',
      kind: 'text',
      value: row => row.fullTitle,
      shownName: row => row.title,
      width: 260,
      render: row => (
        <>
          {row.of === null && <i className="dot" style={{ background: causeColor(row.cause) }} />}
          <Name text={row.title} title={row.fullTitle} />
        </>
      ),
    },
    {
      id: 'time',
      title: `Time${perStep(payload)}`,
      kind: 'duration',
      term: 'idle_cause',
      value: row => row.time,
      bar: { of: idle, color: 'var(--x-operator)', percent: true },
    },
    { id: 'gaps', title: 'Gaps', kind: 'count', value: row => row.gaps },
    {
      id: 'median',
      title: 'Median',
      kind: 'duration',
      value: row => row.median,
      reason: 'This row covers several subjects.',
    },
    {
      id: 'emptied_by',
      title: 'Queue drained by',
      kind: 'text',
      term: 'emptied_by',
      width: 190,
      value: row => drainedBy(row),
    },
    {
      id: 'gain',
      title: 'Saves up to',
      kind: 'duration',
      value: row => (row.gain === null ? null : roundUp(row.gain)),
      reason: payload.reasons.gain_ns,
    },
  ];
}

function drainedBy(row: CauseRow): string {
  if (row.emptied <= 0 || row.time <= 0) {
    return notDrainedText(row.cause);
  }
  return `${row.emptiedBy ?? 'several calls'} ${formatRatio(row.emptied / row.time)}`;
}
