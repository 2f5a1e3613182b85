import { useMemo } from 'react';
import type { CollectiveRow } from '../../../api/types';
import { useTableState } from '../../../state/table';
import type { Column } from '../../../widgets/table/columns';
import { DataTable } from '../../../widgets/table/DataTable';
import { rankName } from '../select';
import { bandwidthColumn, groupName, rankColumn, TransferBar, type TableProps } from './parts';

/** The collectives of each rank: moving data, and waiting. */
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
      rankColumn(),
      { id: 'calls', title: 'Calls', kind: 'count', value: row => row.calls },
      {
        id: 'split',
        title: 'Transfer, then waiting',
        kind: 'number',
        width: 180,
        value: row => row.latency_ns,
        term: 'transfer',
        render: row => <TransferBar transfer={row.transfer_ns} waiting={row.waiting_ns} most={most} />,
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
    <DataTable
      name="collectives-by-worker"
      rows={payload.collectives}
      columns={columns}
      rowKey={row => `${row.worker}/${row.group}/${row.name}/${row.backend}`}
      searchText={row => `${row.name}\n${rankName(row.rank, row.worker)}\n${row.worker}`}
      {...table}
      placeholder="Filter collectives and ranks"
      before={before}
      noun="row"
      empty="No communication is recorded."
    />
  );
}
