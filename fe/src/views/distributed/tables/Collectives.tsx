// The collectives of a job, summed by rank or by process group.
import { useMemo } from 'react';
import type { GroupRow, RankCollectiveRow } from '../../../api/types';
import { formatCount, plural } from '../../../base/format';
import { Name } from '../../../widgets/Name';
import type { Column } from '../../../widgets/table/columns';
import { isLarge, rankName, rankNoun } from '../select';
import css from './JobTable.module.css';
import { bandwidthColumn, JobTable, rankColumn, TransferBar, type TableProps } from './JobTable';

/** Columns that the server does not sort by. */
const UNSORTABLE_COLUMNS: ReadonlySet<string> = new Set(['split']);

/** The collectives of each rank: moving data, and waiting. */
export function RankCollectives(table: TableProps) {
  const { payload } = table;
  const columns = useMemo(() => {
    const longest = Math.max(...payload.collectives.map(row => row.latency_ns ?? 0), 1);
    const barEnd = (row: RankCollectiveRow) => (isLarge(payload) ? (row.latency_ns ?? 1) : longest);
    const hasSizes = isLarge(payload) || payload.collectives.some(row => row.bytes !== null);
    const all: (Column<RankCollectiveRow> | false)[] = [
      { id: 'name', title: 'Collective', kind: 'text', width: 140, value: row => row.name },
      (isLarge(payload) || payload.groups.length > 1) && {
        id: 'group',
        title: 'Process group',
        kind: 'text',
        width: 140,
        value: row => row.group_label,
      },
      rankColumn(payload),
      { id: 'calls', title: 'Calls', kind: 'count', value: row => row.calls },
      {
        id: 'split',
        title: 'Transfer and waiting',
        kind: 'number',
        width: 180,
        value: row => row.latency_ns,
        term: 'transfer',
        render: row => <TransferBar transfer={row.transfer_ns} waiting={row.waiting_ns} most={barEnd(row)} />,
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
        id: 'waiting_ns',
        title: 'Waiting',
        kind: 'duration',
        value: row => row.waiting_ns,
        reason: payload.reasons.waiting_ns,
      },
      { id: 'exposed_ns', title: 'Exposed', kind: 'duration', value: row => row.exposed_ns, term: 'exposed' },
      { id: 'bytes', title: 'Bytes', kind: 'bytes', value: row => row.bytes, reason: payload.reasons.bytes },
      hasSizes && bandwidthColumn(payload),
      hasSizes && {
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
    <JobTable
      {...table}
      part="distributed/operations"
      name="collectives-by-worker"
      rows={payload.collectives}
      columns={columns}
      rowKey={row => `${row.worker}/${row.group}/${row.name}/${row.backend}`}
      searchText={row => `${row.name}\n${rankName(row.rank, row.worker)}\n${row.worker}`}
      unsortable={UNSORTABLE_COLUMNS}
      placeholder={`Filter collectives and ${rankNoun(payload)}s`}
      noun="row"
      empty="No communication was recorded."
    />
  );
}

type GroupOperationRow = Omit<GroupRow, 'family' | 'present' | 'matched_by' | 'mismatches'>;

/** The collectives of each process group. */
export function GroupCollectives(table: TableProps) {
  const { payload } = table;
  const rows = useMemo(
    () =>
      payload.groups.flatMap(group =>
        group.operations.map((operation): GroupOperationRow => ({
          ...operation,
          group: group.id,
          label: group.label,
          ranks: group.ranks?.join(', ') ?? null,
          size: group.size,
          absent: group.absent_ranks.length,
          assumed: group.assumed,
        })),
      ),
    [payload],
  );
  const columns = useMemo<Column<GroupOperationRow>[]>(
    () => [
      {
        id: 'group',
        title: 'Process group',
        kind: 'text',
        value: row => row.label,
        render: row => (
          <>
            <Name
              text={row.label}
              title={`ranks ${row.ranks ?? 'not recorded'}${row.assumed ? ' (inferred from the job description)' : ''}`}
            />
            <span className={`clip dim ${css.beside}`}>
              {row.size !== null && plural(row.size, 'rank')}
              {row.absent > 0 && `, ${formatCount(row.absent)} without a trace`}
            </span>
          </>
        ),
      },
      { id: 'name', title: 'Collective', kind: 'text', value: row => row.name },
      { id: 'collectives', title: 'Collectives', kind: 'count', width: 84, value: row => row.collectives },
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
        id: 'waiting_ns',
        title: 'Waiting',
        kind: 'duration',
        value: row => row.waiting_ns,
        term: 'transfer',
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
      bandwidthColumn(payload),
    ],
    [payload],
  );
  return (
    <JobTable
      {...table}
      part="distributed/groups"
      name="collectives-by-group"
      rows={rows}
      columns={columns}
      rowKey={row => `${row.group}/${row.name}`}
      placeholder="Filter groups and collectives"
      noun="row"
      empty="No communication was recorded."
      foot={!isLarge(payload) && plural(payload.groups.length, 'process group')}
    />
  );
}
