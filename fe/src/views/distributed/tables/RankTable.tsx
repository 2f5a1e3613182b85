// The ranks of a job: where they ran, and how their clocks were aligned.
import { useMemo } from 'react';
import type { DistributedPayload, JobRank } from '../../../api/types';
import { formatDuration, formatLimit } from '../../../base/format';
import { useStepWords } from '../../../state/steps';
import { useTableState } from '../../../state/table';
import type { Column } from '../../../widgets/table/columns';
import { DataTable } from '../../../widgets/table/DataTable';
import { isLarge, rankNoun } from '../select';
import { JobTable, rankColumn, type TableProps } from './JobTable';

type RankRow = DistributedPayload['ranks'][number];

/** How a clock was aligned, in words. */
const CLOCK_METHODS: Record<string, string> = {
  reference: 'reference',
  base_time: 'time of day',
  clock_sync: 'barrier of the trainer',
  collective_ends: 'ends of collectives',
  none: 'not comparable',
};

type RanksProps = TableProps & { onWorker: (worker: string) => void };

/** One row per rank; those of a large job come page by page from the server. */
export function RankTable(props: RanksProps) {
  return isLarge(props.payload) ? <LargeJobRanks {...props} /> : <SmallJobRanks {...props} />;
}

/** The ranks of a job that fits on a page: where they ran, and how their clocks were aligned. */
function SmallJobRanks({ payload, before, onWorker }: RanksProps) {
  const table = useTableState();
  const places = useMemo(
    () =>
      new Map(
        payload.nodes.flatMap(node =>
          node.processes.map(process => [process.worker, { node: node.name, process }] as const),
        ),
      ),
    [payload],
  );
  const columns = useMemo<Column<RankRow>[]>(
    () => [
      { id: 'worker', title: 'Worker', kind: 'text', value: row => row.worker },
      { id: 'rank', title: 'Rank', kind: 'count', value: row => row.rank },
      {
        id: 'state',
        title: 'State',
        kind: 'text',
        width: 150,
        value: row => row.state,
        render: row => (
          <span
            className={`clip ${row.state === 'failed' ? 'status error' : row.compared ? '' : 'dim'}`}
            title={row.reason ?? row.state}
          >
            {row.reason ?? (row.state === 'ready' ? 'compared' : row.state)}
          </span>
        ),
      },
      { id: 'node', title: 'Node', kind: 'text', width: 140, value: row => places.get(row.worker)?.node },
      {
        id: 'devices',
        title: 'Devices',
        kind: 'text',
        width: 160,
        value: row =>
          places
            .get(row.worker)
            ?.process.devices.map(device => device.name ?? `${device.kind} ${device.id}`)
            .join(', '),
      },
      { id: 'calls', title: 'Calls', kind: 'count', value: row => row.calls },
      {
        id: 'method',
        title: 'Clock',
        kind: 'text',
        width: 140,
        term: 'job_clock',
        value: row => row.clock && (CLOCK_METHODS[row.clock.method] ?? row.clock.method),
      },
      { id: 'residual', title: 'Clock error', kind: 'duration', value: row => row.clock?.residual_ns },
      {
        id: 'offset',
        title: 'Correction',
        kind: 'duration',
        width: 92,
        value: row => row.clock?.offset_ns,
      },
      {
        id: 'start',
        title: 'Recording starts',
        kind: 'duration',
        width: 104,
        value: row => row.recording_start_ns,
      },
      { id: 'duration', title: 'Recorded', kind: 'duration', value: row => row.recording_duration_ns },
    ],
    [places],
  );
  return (
    <DataTable
      name="ranks"
      rows={payload.ranks}
      columns={columns}
      rowKey={row => row.worker}
      onOpen={row => onWorker(row.worker)}
      {...table}
      placeholder={`Filter ${rankNoun(payload)}s`}
      before={before}
      noun={rankNoun(payload)}
      foot={
        payload.start_skew_ns !== null &&
        `recordings start within ${formatDuration(payload.start_skew_ns)} of each other`
      }
    />
  );
}

/** Columns of times per average step. */
const TIMES = [
  ['duration_ns', 'Step'],
  ['computation_ns', 'Computation'],
  ['exposed_ns', 'Exposed'],
  ['other_ns', 'Neither'],
  ['waiting_ns', 'Waits'],
  ['cost_ns', 'Costs'],
] as const;

/** Columns that the server does not sort by. */
const UNSORTABLE_COLUMNS: ReadonlySet<string> = new Set(['devices', 'places', 'method']);

/** The ranks of a large job, a row each: where they ran, their average step, what they cost, their clocks. */
function LargeJobRanks({ onWorker, ...table }: RanksProps) {
  const { payload } = table;
  const say = useStepWords();
  const columns = useMemo<Column<JobRank>[]>(
    () => [
      ...(rankNoun(payload) === 'rank' ? [rankColumn<JobRank>(payload)] : []),
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
        title: say(title),
        kind: 'duration',
        value: row => row[id],
        ...(id === 'cost_ns' && {
          render: row => (row.cost_is_limit ? `≤ ${formatLimit(row.cost_ns)}` : formatDuration(row.cost_ns)),
        }),
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
        value: row => row.method && (CLOCK_METHODS[row.method] ?? row.method),
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
    [payload, say],
  );
  return (
    <JobTable
      {...table}
      part="distributed/ranks"
      name="ranks"
      rows={[]}
      columns={columns}
      rowKey={row => row.worker}
      unsortable={UNSORTABLE_COLUMNS}
      onOpen={row => onWorker(row.worker)}
      placeholder={rankNoun(payload) === 'rank' ? 'Rank, worker, or host' : 'Worker or host'}
      noun={rankNoun(payload)}
      empty="No ranks were found."
      foot={
        payload.start_skew_ns !== null &&
        `recordings start within ${formatDuration(payload.start_skew_ns)} of each other`
      }
    />
  );
}
