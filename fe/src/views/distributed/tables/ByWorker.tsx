import { useMemo } from 'react';
import type { RankCollectiveRow } from '../../../api/types';
import type { Column } from '../../../widgets/table/columns';
import { isLarge, rankName, rowNoun } from '../select';
import { JobTable, type TableProps } from './JobTable';
import { bandwidthColumn, rankColumn, TransferBar } from './parts';

const UNSORTED: ReadonlySet<string> = new Set(['split']);

/** The collectives of each rank: moving data, and waiting. */
export function ByWorker(table: TableProps) {
  const { payload } = table;
  const columns = useMemo(() => {
    const longest = Math.max(...payload.collectives.map(row => row.latency_ns ?? 0), 1);
    const most = (row: RankCollectiveRow) => (isLarge(payload) ? (row.latency_ns ?? 1) : longest);
    const sizes = isLarge(payload) || payload.collectives.some(row => row.bytes !== null);
    const all: (Column<RankCollectiveRow> | false)[] = [
      { id: 'name', title: 'Collective', kind: 'text', value: row => row.name },
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
        render: row => <TransferBar transfer={row.transfer_ns} waiting={row.waiting_ns} most={most(row)} />,
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
      sizes && bandwidthColumn(payload),
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
    <JobTable
      {...table}
      part="distributed/operations"
      name="collectives-by-worker"
      rows={payload.collectives}
      columns={columns}
      rowKey={row => `${row.worker}/${row.group}/${row.name}/${row.backend}`}
      searchText={row => `${row.name}\n${rankName(row.rank, row.worker)}\n${row.worker}`}
      unsorted={UNSORTED}
      placeholder={`Filter collectives and ${rowNoun(payload)}s`}
      noun="row"
      empty="No communication was recorded."
    />
  );
}
