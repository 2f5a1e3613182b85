import type { JobPathPayload, Selectors, JobPathSegment } from '../../api/types';
import { useView, useWorkers } from '../../state/queries';
import { useSelection } from '../../state/selection';
import { useTableState } from '../../state/table';
import { Panel } from '../../widgets/Panel';
import { Sentence, parseLink } from '../../widgets/Sentence';
import type { Column } from '../../widgets/table/columns';
import { DataTable } from '../../widgets/table/DataTable';
import { useStepWords, type Say } from '../../state/steps';
import css from './JobPath.module.css';

/** Critical path of the job, if it has several ranks. */
export function JobPathPanel({ selectors }: { selectors: Required<Selectors> }) {
  const workers = useWorkers(selectors.run).data?.workers.length ?? 0;
  if (workers < 2) {
    return null;
  }
  return (
    <Panel
      title="Critical path of the job"
      note="at each collective it continues on the rank that arrives last"
    >
      <JobPath selectors={selectors} workers={workers} />
    </Panel>
  );
}

export function JobPath({ selectors, workers }: { selectors: Required<Selectors>; workers: number }) {
  const { data, error } = useView<JobPathPayload>('critical_path/ranks', selectors, {});
  const { select } = useSelection();
  const say = useStepWords();
  const table = useTableState({ id: 'begin_ns', descending: false });
  if (data?.state !== 'ready') {
    return (
      <div className={css.job} aria-busy={error === null}>
        <p className="dim">{error?.message ?? `Computing it from all ${workers} ranks…`}</p>
      </div>
    );
  }
  const { headline, explanation, stays: segments, total, reasons } = data.payload;
  return (
    <div className={css.job}>
      <div className={css.words}>
        <p>
          <Sentence text={headline} /> <Sentence text={explanation} />
        </p>
        {Object.entries(reasons).map(([field, reason]) => (
          <p key={field}>
            <Sentence text={reason} />
          </p>
        ))}
      </div>
      <div className={css.segments}>
        <DataTable
          name="segments of the path"
          rows={segments}
          columns={columnsOf(
            segments.every(segment => typeof segment.rank === 'number'),
            say,
          )}
          rowKey={segment => `${segment.worker} ${segment.begin_ns}`}
          onSelect={segment => segment && select(parseLink(segment.link))}
          {...table}
          placeholder="Filter ranks and collectives"
          noun="segment"
          empty={
            reasons.ranks
              ? 'No part of the path is known yet.'
              : say(
                  'No rank has a complete step, so there is no critical path. Record at least one whole step.',
                )
          }
          foot={
            total > segments.length
              ? `the first ${segments.length} of ${total}`
              : 'click to open on the timeline'
          }
        />
      </div>
    </div>
  );
}

const columnsOf = (numbered: boolean, say: Say): Column<JobPathSegment>[] => [
  { id: 'begin_ns', title: 'Begins', kind: 'duration', value: segment => segment.begin_ns },
  {
    id: 'rank',
    title: numbered ? 'Rank' : 'Worker',
    kind: 'text',
    value: segment => (numbered ? `rank ${segment.rank}` : segment.worker),
    width: 90,
  },
  { id: 'step', title: say('Step'), kind: 'text', value: segment => segment.step, width: 60 },
  { id: 'duration_ns', title: 'On the path', kind: 'duration', value: segment => segment.duration_ns },
  { id: 'host_ns', title: 'Host', kind: 'duration', value: segment => segment.host_ns },
  { id: 'device_ns', title: 'Device', kind: 'duration', value: segment => segment.device_ns },
  {
    id: 'communication_ns',
    title: 'Communication',
    kind: 'duration',
    value: segment => segment.communication_ns,
  },
  { id: 'latency_ns', title: 'Latency', kind: 'duration', value: segment => segment.latency_ns },
  {
    id: 'collective',
    title: 'Collective waited for',
    kind: 'text',
    value: segment => segment.collective,
    reason: 'The path stays on this rank.',
    width: 160,
  },
];
