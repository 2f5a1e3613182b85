import { useMemo } from 'react';
import type { JobRank } from '../../../api/types';
import { formatDuration } from '../../../base/format';
import type { Column } from '../../../widgets/table/columns';
import { JobTable, type TableProps } from './JobTable';
import { rowNoun } from '../select';
import { rankColumn } from './parts';
import { METHOD } from './Ranks';

const TIMES = [
  ['duration_ns', 'Step'],
  ['computation_ns', 'Computation'],
  ['exposed_ns', 'Exposed'],
  ['other_ns', 'Neither'],
  ['waiting_ns', 'Waits'],
  ['cost_ns', 'Costs'],
] as const;

const UNSORTED: ReadonlySet<string> = new Set(['devices', 'places', 'method']);

/** The ranks of a large job, a row each: where they ran, their average step, what they cost, their clocks. */
export function JobRanks({ onWorker, ...table }: TableProps & { onWorker: (worker: string) => void }) {
  const { payload } = table;
  const columns = useMemo<Column<JobRank>[]>(
    () => [
      ...(rowNoun(payload) === 'rank' ? [rankColumn<JobRank>(payload)] : []),
      { id: 'worker', title: 'Worker', kind: 'text', value: row => row.worker },
      { id: 'host', title: 'Host', kind: 'text', width: 120, value: row => row.host },
      {
        id: 'places',
        title: 'Position in groups',
        kind: 'text',
        width: 160,
        value: row => row.places.map(each => `${each.family} ${each.place}`).join(', ') || null,
      },
      ...TIMES.map(([id, title]): Column<JobRank> => ({
        id,
        title,
        kind: 'duration',
        value: row => row[id],
      })),
      { id: 'last', title: 'Arrives last', kind: 'count', value: row => row.last },
      {
        id: 'state',
        title: 'State',
        kind: 'text',
        width: 130,
        value: row => row.state,
        render: row => (
          <span className={`clip ${row.state === 'failed' ? 'status error' : ''}`} title={row.reason ?? ''}>
            {row.reason ?? (row.state === 'ready' ? 'compared' : row.state)}
          </span>
        ),
      },
      { id: 'devices', title: 'Devices', kind: 'text', width: 140, value: row => row.devices.join(', ') },
      { id: 'calls', title: 'Calls', kind: 'count', value: row => row.calls },
      {
        id: 'method',
        title: 'Clock',
        kind: 'text',
        width: 140,
        term: 'job_clock',
        value: row => row.method && (METHOD[row.method] ?? row.method),
      },
      { id: 'residual_ns', title: 'Clock error', kind: 'duration', value: row => row.residual_ns },
      {
        id: 'recording_start_ns',
        title: 'Recording starts',
        kind: 'duration',
        width: 104,
        value: row => row.recording_start_ns,
      },
    ],
    [payload],
  );
  return (
    <JobTable
      {...table}
      part="distributed/ranks"
      name="ranks"
      rows={[]}
      columns={columns}
      rowKey={row => row.worker}
      unsorted={UNSORTED}
      onOpen={row => onWorker(row.worker)}
      placeholder={rowNoun(payload) === 'rank' ? 'Rank, worker, or host' : 'Worker or host'}
      noun={rowNoun(payload)}
      empty="No rank, worker, or host matches."
      foot={
        payload.start_skew_ns !== null &&
        `recordings start within ${formatDuration(payload.start_skew_ns)} of each other`
      }
    />
  );
}
