import { useMemo } from 'react';
import type { GroupRow } from '../../../api/types';
import { formatCount, plural } from '../../../base/format';
import type { Column } from '../../../widgets/table/columns';
import { isLarge } from '../select';
import { JobTable, type TableProps } from './JobTable';
import { bandwidthColumn } from './parts';

type Row = Omit<GroupRow, 'family' | 'present' | 'matched_by' | 'mismatches'>;

/** The collectives of each process group. */
export function ByGroup(table: TableProps) {
  const { payload } = table;
  const rows = useMemo(
    () =>
      payload.groups.flatMap(group =>
        group.operations.map((operation): Row => ({
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
  const columns = useMemo<Column<Row>[]>(
    () => [
      {
        id: 'group',
        title: 'Process group',
        kind: 'text',
        value: row => row.label,
        render: row => (
          <span
            className="clip"
            title={`ranks ${row.ranks ?? 'not recorded'}${row.assumed ? ' (inferred from the job description)' : ''}`}
          >
            {row.label}
            <span className="dim">
              {' '}
              {row.size !== null && plural(row.size, 'rank')}
              {row.absent > 0 && `, ${formatCount(row.absent)} without a trace`}
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
