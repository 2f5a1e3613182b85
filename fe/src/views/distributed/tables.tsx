// The tables of the job: by worker, by process group, every collective, the ranks with their clocks.
import { useMemo } from 'react';
import type { CollectiveInstance, CollectiveRow, Collectives, Distributed, Selectors } from '../../api/types';
import { formatCount, formatDuration } from '../../base/format';
import { usePages } from '../../state/pages';
import { useTableState } from '../../state/table';
import { since } from '../../timeline/ticks';
import type { Column } from '../../widgets/table/columns';
import { DataTable } from '../../widgets/table/DataTable';
import { PAGE, PagedTable } from '../../widgets/table/PagedTable';
import { groupLabel, rankName } from './select';

interface TableProps {
  payload: Distributed;
  before: React.ReactNode;
}

/** A stacked bar: moving data, then waiting. */
function TransferBar({
  transfer,
  waiting,
  most,
}: {
  transfer: number | null;
  waiting: number | null;
  most: number;
}) {
  if (transfer === null || waiting === null) {
    return <span className="dim">not compared</span>;
  }
  return (
    <span
      className="transfer-bar"
      title={`transfer ${formatDuration(transfer)}, waiting for others ${formatDuration(waiting)}`}
    >
      <i className="transfer" style={{ width: `${(transfer / most) * 100}%` }} />
      <i className="waits" style={{ width: `${(waiting / most) * 100}%` }} />
    </span>
  );
}

const groupName = (payload: Distributed, id: number): string => {
  const group = payload.groups.find(each => each.id === id);
  return group ? groupLabel(group) : `group ${id}`;
};

export function ByWorker({ payload, before }: TableProps) {
  const table = useTableState();
  const columns = useMemo(() => {
    const most = Math.max(...payload.collectives.map(row => row.latency_ns ?? 0), 1);
    const sizes = payload.collectives.some(row => row.bytes !== null);
    const all: (Column<CollectiveRow> | false)[] = [
      { id: 'name', title: 'Collective', kind: 'text', value: row => row.name },
      payload.groups.length > 1 && {
        id: 'group',
        title: 'Process group',
        kind: 'text',
        width: 140,
        value: row => groupName(payload, row.group),
      },
      {
        id: 'rank',
        title: 'Rank',
        kind: 'number',
        width: 72,
        value: row => row.rank ?? row.worker,
        render: row => <span title={row.worker}>{row.rank ?? row.worker}</span>,
      },
      { id: 'calls', title: 'Calls', kind: 'count', value: row => row.calls },
      {
        id: 'split',
        title: 'Transfer, then waiting',
        kind: 'number',
        width: 180,
        value: row => row.latency_ns,
        term: 'synchronizing',
        render: row => <TransferBar transfer={row.transfer_ns} waiting={row.synchronizing_ns} most={most} />,
      },
      { id: 'latency_ns', title: 'Latency', kind: 'duration', value: row => row.latency_ns },
      {
        id: 'transfer_ns',
        title: 'Transfer',
        kind: 'duration',
        value: row => row.transfer_ns,
        reason: payload.reasons.transfer_ns,
      },
      {
        id: 'synchronizing_ns',
        title: 'Waiting',
        kind: 'duration',
        value: row => row.synchronizing_ns,
        reason: payload.reasons.synchronizing_ns,
      },
      { id: 'exposed_ns', title: 'Exposed', kind: 'duration', value: row => row.exposed_ns, term: 'exposed' },
      { id: 'bytes', title: 'Bytes', kind: 'bytes', value: row => row.bytes, reason: payload.reasons.bytes },
      sizes && {
        id: 'bus_bandwidth',
        title: 'Bus bandwidth',
        kind: 'rate',
        width: 124,
        value: row => row.bus_bandwidth,
        term: 'bus_bandwidth',
        reason: payload.reasons.bus_bandwidth,
        render: row => <Rate value={row.bus_bandwidth!} least={row.lower_bound} />,
      },
      sizes && {
        id: 'algorithm_bandwidth',
        title: 'Algorithm',
        kind: 'rate',
        value: row => row.algorithm_bandwidth,
        hidden: true,
      },
    ];
    return all.filter(column => column !== false);
  }, [payload]);
  return (
    <DataTable
      name="collectives-by-worker"
      rows={payload.collectives}
      columns={columns}
      rowKey={row => `${row.worker}/${row.group}/${row.name}/${row.backend}`}
      searchText={row => `${row.name}\n${rankName(row.rank, row.worker)}\n${row.worker}`}
      {...table}
      placeholder="Filter collectives and ranks"
      before={before}
      noun="rows"
      empty="No communication is recorded."
    />
  );
}

function Rate({ value, least }: { value: number; least: boolean }) {
  return (
    <span title={least ? 'At least: the time includes waiting for other ranks.' : undefined}>
      {least && '≥ '}
      {(value / 1e9).toPrecision(3)} <span className="unit">GB/s</span>
    </span>
  );
}

type GroupRow = Distributed['groups'][number]['operations'][number] & {
  group: Distributed['groups'][number];
};

export function ByGroup({ payload, before }: TableProps) {
  const table = useTableState();
  const rows = useMemo(
    () => payload.groups.flatMap(group => group.operations.map(operation => ({ ...operation, group }))),
    [payload],
  );
  const columns = useMemo<Column<GroupRow>[]>(
    () => [
      {
        id: 'group',
        title: 'Process group',
        kind: 'text',
        value: row => groupLabel(row.group),
        render: row => (
          <span
            className="clip"
            title={`ranks ${row.group.ranks?.join(', ') ?? 'not recorded'}${row.group.assumed ? ' (follows from the description of the job)' : ''}`}
          >
            {groupLabel(row.group)}
            <span className="dim">
              {' '}
              {row.group.size !== null && `${row.group.size} ranks`}
              {row.group.absent_ranks.length > 0 && `, ${row.group.absent_ranks.length} without a trace`}
            </span>
          </span>
        ),
      },
      { id: 'name', title: 'Collective', kind: 'text', value: row => row.name },
      { id: 'operations', title: 'Collectives', kind: 'count', width: 84, value: row => row.operations },
      { id: 'compared', title: 'Compared', kind: 'count', width: 80, value: row => row.compared },
      {
        id: 'latency_ns',
        title: 'Latency',
        kind: 'duration',
        value: row => row.latency_ns,
        term: 'rank_time',
      },
      { id: 'transfer_ns', title: 'Transfer', kind: 'duration', value: row => row.transfer_ns },
      {
        id: 'synchronizing_ns',
        title: 'Waiting',
        kind: 'duration',
        value: row => row.synchronizing_ns,
        term: 'synchronizing',
      },
      { id: 'exposed_ns', title: 'Exposed', kind: 'duration', value: row => row.exposed_ns, term: 'exposed' },
      {
        id: 'mean_skew_ns',
        title: 'Mean skew',
        kind: 'duration',
        value: row => row.mean_skew_ns,
        term: 'skew',
        reason: payload.reasons.mean_skew_ns,
      },
      {
        id: 'max_skew_ns',
        title: 'Max skew',
        kind: 'duration',
        value: row => row.max_skew_ns,
        reason: payload.reasons.max_skew_ns,
      },
      { id: 'bytes', title: 'Bytes', kind: 'bytes', value: row => row.bytes, reason: payload.reasons.bytes },
      {
        id: 'bus_bandwidth',
        title: 'Bus bandwidth',
        kind: 'rate',
        width: 124,
        value: row => row.bus_bandwidth,
        term: 'bus_bandwidth',
        reason: payload.reasons.bus_bandwidth,
        render: row => <Rate value={row.bus_bandwidth!} least={row.lower_bound} />,
      },
    ],
    [payload],
  );
  return (
    <DataTable
      name="collectives-by-group"
      rows={rows}
      columns={columns}
      rowKey={row => `${row.group.id}/${row.name}`}
      {...table}
      placeholder="Filter groups and collectives"
      before={before}
      noun="rows"
      empty="No communication is recorded."
      foot={`${formatCount(payload.groups.length)} process groups`}
    />
  );
}

interface EveryProps extends TableProps {
  selectors: Selectors;
  sort: string;
  search: string;
  filter: Record<string, string>;
  onSort: (sort: string) => void;
  onSearch: (search: string) => void;
  onPick: (id: number) => void;
}

const UNSORTED: ReadonlySet<string> = new Set(['late', 'dtype']);

export function Every({
  payload,
  selectors,
  sort,
  search,
  filter,
  onSort,
  onSearch,
  onPick,
  before,
}: EveryProps) {
  const by = sort.replace(/^-/, '');
  const descending = sort.startsWith('-');
  const wanted = JSON.stringify(filter);
  const params = useMemo<Record<string, string>>(
    () => ({
      ...(JSON.parse(wanted) as Record<string, string>),
      sort: by,
      descending: String(descending),
      ...(search && { name: search }),
    }),
    [wanted, by, descending, search],
  );
  const pages = usePages<Collectives>('distributed/collectives', selectors, params, PAGE);
  const columns = useMemo(() => everyColumns(payload, onPick), [payload, onPick]);
  return (
    <PagedTable
      name="collectives"
      columns={columns}
      total={pages.first?.total}
      page={index => pages.page(index)?.rows}
      onPages={pages.setPages}
      all={async () => (await pages.ask(0)).rows}
      sort={{ id: by, descending }}
      onSort={next => onSort(`${next.descending ? '-' : ''}${next.id}`)}
      unsorted={UNSORTED}
      search={search}
      onSearch={onSearch}
      placeholder="Filter by name"
      onOpen={row => onPick(row.id)}
      before={before}
      empty="No collective passes these filters."
      noun="collectives"
    />
  );
}

function everyColumns(payload: Distributed, onPick: (id: number) => void): Column<CollectiveInstance>[] {
  return [
    {
      id: 'name',
      title: 'Collective',
      kind: 'text',
      value: row => row.name,
      render: row => (
        <button type="button" className="textlink clip" onClick={() => onPick(row.id)}>
          {row.name}
          {row.mismatch && (
            <span className="status warning" title={row.mismatch}>
              {' '}
              differs
            </span>
          )}
        </button>
      ),
    },
    {
      id: 'group',
      title: 'Process group',
      kind: 'text',
      width: 130,
      value: row => groupName(payload, row.group),
    },
    { id: 'step', title: 'Step', kind: 'number', value: row => row.step },
    {
      id: 'start',
      title: 'Start',
      kind: 'number',
      width: 100,
      value: row => row.start_ns,
      render: row => since(row.start_ns!, 10_000),
      reason: payload.reasons.start_ns,
    },
    { id: 'ranks', title: 'Ranks', kind: 'count', value: row => row.ranks },
    { id: 'bytes', title: 'Bytes', kind: 'bytes', value: row => row.bytes, reason: payload.reasons.bytes },
    { id: 'latency', title: 'Latency', kind: 'duration', value: row => row.latency_ns },
    { id: 'transfer', title: 'Transfer', kind: 'duration', value: row => row.transfer_ns },
    { id: 'waiting', title: 'Waiting', kind: 'duration', value: row => row.waiting_ns, term: 'rank_time' },
    {
      id: 'skew',
      title: 'Skew',
      kind: 'duration',
      value: row => row.skew_ns,
      term: 'skew',
      reason: payload.reasons.skew_ns,
    },
    {
      id: 'late',
      title: 'Last',
      kind: 'text',
      width: 90,
      value: row => (row.late_worker === null ? null : rankName(row.late_rank, row.late_worker)),
      reason: 'The difference is within the error of the clocks.',
    },
    {
      id: 'bandwidth',
      title: 'Bus bandwidth',
      kind: 'rate',
      width: 124,
      value: row => row.bus_bandwidth,
      reason: payload.reasons.bus_bandwidth,
      render: row => <Rate value={row.bus_bandwidth!} least={row.lower_bound} />,
    },
  ];
}

type RankRow = Distributed['ranks'][number];

const METHOD: Record<string, string> = {
  reference: 'sets the clock',
  base_time: 'time of day',
  collective_ends: 'ends of collectives',
  none: 'not comparable',
};

export function Ranks({ payload, before, onWorker }: TableProps & { onWorker: (worker: string) => void }) {
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
      { id: 'rank', title: 'Rank', kind: 'number', value: row => row.rank },
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
        value: row => row.clock && (METHOD[row.clock.method] ?? row.clock.method),
      },
      { id: 'residual', title: 'Clock error', kind: 'duration', value: row => row.clock?.residual_ns },
      {
        id: 'offset',
        title: 'Corrected by',
        kind: 'duration',
        width: 92,
        value: row => row.clock?.offset_ns,
      },
      {
        id: 'start',
        title: 'Recording from',
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
      placeholder="Filter ranks"
      before={before}
      noun="ranks"
      foot={
        payload.start_skew_ns !== null &&
        `first to last start of the recordings: ${formatDuration(payload.start_skew_ns)}`
      }
    />
  );
}
