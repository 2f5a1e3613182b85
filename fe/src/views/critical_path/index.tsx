import { useMemo } from 'react';
import type { CriticalPathPayload, Selectors, TargetRow } from '../../api/types';
import { formatDuration, plural } from '../../base/format';
import { useView } from '../../state/queries';
import { useSelection } from '../../state/selection';
import { useTableState } from '../../state/table';
import { Answer } from '../../widgets/Answer';
import { HowWeKnow, explainedShare } from '../../widgets/HowWeKnow';
import { Select } from '../../widgets/inputs/Select';
import { Panel } from '../../widgets/Panel';
import { ReservedWidth } from '../../widgets/Pending';
import { Sentence } from '../../widgets/Sentence';
import { Story } from '../../widgets/Story';
import type { Column } from '../../widgets/table/columns';
import { DataTable } from '../../widgets/table/DataTable';
import { timelineTarget } from '../_shared/modules/select';
import { PathBar } from './PathBar';
import { PATH_GROUPINGS, PathGroups } from './PathGroups';
import { JobPathPanel } from './JobPath';
import { WhatIf, type Target } from './WhatIf';
import css from './JobPath.module.css';
import splitCss from '../../widgets/table/Split.module.css';

/** Letters reserved until the other ranks are compared: in the headline, and below the path. */
const HEADLINE_LETTERS = 40;
const RANKS_LETTERS = 200;

export default function CriticalPathView({
  payload: alone,
  crumb,
  run,
  worker,
  span,
}: {
  payload: CriticalPathPayload;
  crumb: string;
} & Required<Selectors>) {
  const { selection, select } = useSelection();
  const { params } = selection;
  const selectors = useMemo(() => ({ run, worker, span }), [run, worker, span]);
  const { payload, comparing } = useRankComparison(alone, selectors);
  const chosen = chosenOf(payload, params.select);
  const by = PATH_GROUPINGS.find(([key]) => key === params.path_by)?.[0] ?? 'category';
  const table = useTableState({ id: 'path_ns', descending: true });
  const columns = useMemo(() => columnsOf(payload), [payload]);
  const base = payload.steps_recorded ? payload.step_noun : 'trace';
  const average = payload.steps.length > 1;
  const title = average ? titleOfAverage(payload) : `The ${base}`;
  return (
    <div className={`${splitCss.view} fill`}>
      <Story coming={comparing}>
        <Answer
          key={comparing ? 'alone' : 'compared'}
          crumb={crumb}
          why={<Sentence text={payload.explanation} />}
        >
          <Sentence text={payload.headline} />
          {comparing && <ReservedWidth letters={HEADLINE_LETTERS} />}
        </Answer>
      </Story>
      <Story coming={comparing}>
        <Panel
          title={`${title}’s critical path, ${formatDuration(payload.path.duration_ns)}`}
          note="each moment counts for what was waited for last"
          actions={
            <Select
              label="By"
              name="Path by"
              value={by}
              options={PATH_GROUPINGS}
              onChange={next => select({ params: { ...params, path_by: next } })}
            />
          }
        >
          <PathBar path={payload.path} />
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
          {by !== 'category' && <PathGroups by={by} path={payload.path} selectors={selectors} />}
        </Panel>
      </Story>
      <JobPathPanel selectors={selectors} />
      {chosen && <WhatIf target={chosen} percents={payload.percents} base={base} selectors={selectors} />}
      <div className={splitCss.split}>
        <DataTable
          name="what-if targets"
          rows={payload.targets}
          columns={columns}
          rowKey={row => row.target}
          selected={chosen?.target}
          onSelect={row => select({ params: row ? { ...params, select: row.target } : {} })}
          onOpen={row =>
            typeof row.event === 'number' && select(timelineTarget(row.event, row.kind === 'module'))
          }
          {...table}
          placeholder={`Filter ${plural(payload.targets.length, 'target')}`}
          noun="target"
          empty={
            payload.path.duration_ns > 0
              ? `Nothing would shorten the ${base} if it ran faster.`
              : 'No time passes on the critical path.'
          }
          foot={`${average ? `per ${base}; ` : ''}targets overlap, so times don't add up`}
        />
      </div>
      <HowWeKnow confidence={explainedShare(payload.explained)}>
        <p>
          <Sentence text={payload.limits} />
        </p>
        {Object.entries(payload.reasons).map(([field, reason]) => (
          <p key={field}>
            <Sentence text={reason} />
          </p>
        ))}
      </HowWeKnow>
    </div>
  );
}

/** The payload with communication split into transfer and waiting, once the other ranks' traces are read. */
function useRankComparison(
  alone: CriticalPathPayload,
  selectors: Required<Selectors>,
): { payload: CriticalPathPayload; comparing: boolean } {
  const communicates = alone.path.categories.some(({ name }) => name === 'communication');
  const { data, error } = useView<CriticalPathPayload>('critical_path/beside', selectors, {}, communicates);
  return data?.state === 'ready'
    ? { payload: data.payload, comparing: data.loading > 0 }
    : { payload: alone, comparing: communicates && !error };
}

/** Return the selected target; one that is no row of the table has its curve requested. */
function chosenOf({ targets }: CriticalPathPayload, picked: string | undefined): Target | undefined {
  const row = targets.find(({ target }) => target === picked);
  const title = picked?.slice(picked.indexOf(':') + 1);
  return row ?? (picked && title ? { target: picked, title, step_ns: null } : targets[0]);
}

function columnsOf(payload: CriticalPathPayload): Column<TargetRow>[] {
  const savings = (percent: number): Column<TargetRow> => ({
    id: `gain_${percent}`,
    title: `${percent}% off`,
    kind: 'duration',
    value: row => savedTime(payload, row, percent),
    reason: 'Computed for the largest targets only; select the row to compute it.',
    width: 92,
  });
  return [
    {
      id: 'title',
      title: 'Target, including what it calls',
      kind: 'text',
      value: row => row.title,
      width: 260,
    },
    {
      id: 'kind',
      title: 'Kind',
      kind: 'text',
      value: row => row.kind.replaceAll('_', ' '),
      width: 110,
      grow: false,
    },
    {
      id: 'calls',
      title: 'Calls',
      kind: 'number',
      value: row => (row.kind === 'host' ? null : row.calls),
      reason: 'The host as a whole has no calls.',
    },
    {
      id: 'path_ns',
      title: 'On the path',
      kind: 'duration',
      value: row => row.path_ns,
      bar: { of: payload.path.duration_ns, color: 'var(--c-cpu_exec)', percent: true },
    },
    {
      id: 'slack_ns',
      title: 'Slack',
      kind: 'duration',
      value: row => row.slack_ns,
      reason: 'Nothing waits for it.',
    },
    savings(25),
    savings(50),
    savings(100),
  ];
}

/** Return how much shorter a step is with `percent` of a target's time removed. */
function savedTime({ percents }: CriticalPathPayload, row: TargetRow, percent: number): number | null {
  const now = row.step_ns?.[0];
  const then = row.step_ns?.[percents.indexOf(percent)];
  return now === undefined || then === undefined ? null : now - then;
}

function titleOfAverage({ path, step_noun: noun }: CriticalPathPayload): string {
  return path.odd.length > 0 ? `A typical ${noun}` : `An average ${noun}`;
}
