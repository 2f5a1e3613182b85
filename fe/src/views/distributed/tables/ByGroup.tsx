import { useMemo } from 'react';
import type { Distributed } from '../../../api/types';
import { formatCount } from '../../../base/format';
import { useTableState } from '../../../state/table';
import type { Column } from '../../../widgets/table/columns';
import { DataTable } from '../../../widgets/table/DataTable';
import { groupLabel } from '../select';
import { bandwidthColumn, type TableProps } from './parts';

type GroupRow = Distributed['groups'][number]['operations'][number] & {
  group: Distributed['groups'][number];
};

/** The collectives of each process group. */
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
    <DataTable
      name="collectives-by-group"
      rows={rows}
      columns={columns}
      rowKey={row => `${row.group.id}/${row.name}`}
      {...table}
      placeholder="Filter groups and collectives"
      before={before}
      noun="row"
      empty="No communication is recorded."
      foot={`${formatCount(payload.groups.length)} process groups`}
    />
  );
}
