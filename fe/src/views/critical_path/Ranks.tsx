import { useState } from 'react';
import type { JobPathPayload, Selectors, JobPathSegment } from '../../api/types';
import { useView, useWorkers } from '../../state/queries';
import { useSelection } from '../../state/selection';
import { useTableState } from '../../state/table';
import { Button } from '../../widgets/inputs/Button';
import { Panel } from '../../widgets/Panel';
import { Sentence, parseLink } from '../../widgets/Sentence';
import type { Column } from '../../widgets/table/columns';
import { DataTable } from '../../widgets/table/DataTable';
import css from './Ranks.module.css';

/** The path of the job, asked for by a button: every rank's schedule is needed. */
export function Ranks({ selectors }: { selectors: Required<Selectors> }) {
  const workers = useWorkers(selectors.run).data?.workers.length ?? 0;
  const [wanted, setWanted] = useState(false);
  if (workers < 2) {
    return null;
  }
  return (
    <Panel title="Path of the job" note="at each collective it goes on at the rank that arrives last">
      {wanted ? (
        <JobPath selectors={selectors} />
      ) : (
        <Button onClick={() => setWanted(true)}>Find it in all {workers} ranks</Button>
      )}
    </Panel>
  );
}

export function JobPath({ selectors }: { selectors: Required<Selectors> }) {
  const { data, error } = useView<JobPathPayload>('critical_path/ranks', selectors, {});
  const { select } = useSelection();
  const table = useTableState({ id: 'begin_ns', descending: false });
  if (data?.state !== 'ready') {
    return <p className="dim">{error?.message ?? 'Reading the ranks…'}</p>;
  }
  const { headline, explanation, stays, total, reasons } = data.payload;
  return (
    <>
      <p>
        <Sentence text={headline} /> <Sentence text={explanation} />
      </p>
      {Object.entries(reasons).map(([field, reason]) => (
        <p key={field}>
          <Sentence text={reason} />
        </p>
      ))}
      <div className={css.stays}>
        <DataTable
          name="stays of the path"
          rows={stays}
          columns={columnsOf(stays.every(stay => typeof stay.rank === 'number'))}
          rowKey={stay => `${stay.worker} ${stay.begin_ns}`}
          onSelect={stay => stay && select(parseLink(stay.link))}
          {...table}
          placeholder="Filter ranks and collectives"
          noun="stay"
          empty="No rank has a complete step to find a path through."
          foot={total > stays.length ? `the first ${stays.length} of ${total}` : 'a click opens the timeline'}
        />
      </div>
    </>
  );
}

const columnsOf = (numbered: boolean): Column<JobPathSegment>[] => [
  { id: 'begin_ns', title: 'Begins', kind: 'duration', value: stay => stay.begin_ns },
  {
    id: 'rank',
    title: numbered ? 'Rank' : 'Worker',
    kind: 'text',
    value: stay => (numbered ? `rank ${stay.rank}` : stay.worker),
    width: 90,
  },
  { id: 'step', title: 'Step', kind: 'text', value: stay => stay.step, width: 60 },
  { id: 'duration_ns', title: 'On the path', kind: 'duration', value: stay => stay.duration_ns },
  { id: 'host_ns', title: 'Host', kind: 'duration', value: stay => stay.host_ns },
  { id: 'device_ns', title: 'Device', kind: 'duration', value: stay => stay.device_ns },
  { id: 'communication_ns', title: 'Communication', kind: 'duration', value: stay => stay.communication_ns },
  { id: 'latency_ns', title: 'Latency', kind: 'duration', value: stay => stay.latency_ns },
  {
    id: 'collective',
    title: 'Waited for in',
    kind: 'text',
    value: stay => stay.collective,
    reason: 'The path stays on this rank.',
    width: 160,
  },
];
