import { useMemo } from 'react';
import type { Distributed } from '../../../api/types';
import { familyColor } from '../../../base/family';
import { formatDuration } from '../../../base/format';
import { useTableState } from '../../../state/table';
import { Meter } from '../../../widgets/charts/Meter';
import type { Column } from '../../../widgets/table/columns';
import { DataTable } from '../../../widgets/table/DataTable';
import { rankName } from '../select';
import { rankColumn, type TableProps } from './parts';

type Row = Distributed['families'][number];

/** What the device of each rank works on: computation by family, communication, memory. */
export function Families({ payload, before }: TableProps) {
  const table = useTableState();
  const columns = useMemo(
    (): Column<Row>[] => [
      {
        id: 'family',
        title: 'Family',
        kind: 'text',
        width: 180,
        value: row => row.family,
        render: row => (
          <span>
            <i className="dot" style={{ background: familyColor(row.family) }} /> {row.family}
          </span>
        ),
      },
      { id: 'sort', title: 'Kind', kind: 'text', width: 128, grow: false, value: row => row.kind },
      rankColumn(),
      { id: 'calls', title: 'Calls', kind: 'count', value: row => row.calls },
      { id: 'device_ns', title: 'Device time', kind: 'duration', value: row => row.device_ns },
      {
        id: 'share',
        title: 'Of the rank',
        kind: 'ratio',
        width: 120,
        value: row => row.share,
      },
      {
        id: 'share_bar',
        title: 'Share',
        kind: 'number',
        width: 140,
        value: row => row.share,
        render: row => <Meter ratio={row.share} color={familyColor(row.family)} />,
      },
      {
        id: 'kernel',
        title: 'Most of it',
        kind: 'text',
        value: row => row.kernel,
        render: row => (
          <span className="clip" title={`${row.kernel}: ${formatDuration(row.kernel_ns)}`}>
            {row.kernel} <span className="dim">{formatDuration(row.kernel_ns)}</span>
          </span>
        ),
      },
    ],
    [],
  );
  return (
    <DataTable
      name="families-by-rank"
      rows={payload.families}
      columns={columns}
      rowKey={row => `${row.worker}/${row.family}`}
      searchText={row => `${row.family}\n${row.kind}\n${rankName(row.rank, row.worker)}\n${row.kernel}`}
      {...table}
      placeholder="Filter families, kernels and ranks"
      before={before}
      noun="row"
      empty="No device work is recorded."
    />
  );
}
