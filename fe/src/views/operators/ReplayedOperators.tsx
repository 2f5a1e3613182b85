// What graphs replayed, as a table: operators, modules and lines at capture.
import { useMemo, useState, type ReactNode } from 'react';
import type { OriginTimeRow } from '../../api/types';
import { plural } from '../../base/format';
import { useSelection } from '../../state/selection';
import type { TableSearch, TableSort } from '../../state/table';
import type { Column } from '../../widgets/table/columns';
import { DataTable } from '../../widgets/table/DataTable';

const keyOf = (row: OriginTimeRow) => `${row.operator} ${row.module} ${row.lines.join()} ${row.event}`;

/** What graphs replayed, by the operator, module and line at capture; `before` are filters of the tab. */
export function ReplayedOperators({ rows, before }: { rows: OriginTimeRow[]; before?: ReactNode }) {
  const { select } = useSelection();
  const [sort, setSort] = useState<TableSort | undefined>({ id: 'ns', descending: true });
  const [search, setSearch] = useState<TableSearch>({ text: '', regex: false });
  const columns = useMemo(() => replayedColumns(rows), [rows]);
  const show = (row: OriginTimeRow) => select({ view: 'trace', params: { event: String(row.event) } });
  return (
    <div data-part="replayed">
      <DataTable
        name="replayed_operators"
        rows={rows}
        columns={columns}
        rowKey={keyOf}
        sort={sort}
        onSort={setSort}
        search={search}
        onSearch={setSearch}
        hotkey={false}
        placeholder={`Filter ${plural(rows.length, 'row')} of graph replays`}
        noun="row"
        before={before}
        onOpen={show}
        onSelect={row => row && show(row)}
      />
    </div>
  );
}

function replayedColumns(rows: OriginTimeRow[]): Column<OriginTimeRow>[] {
  const total = rows.reduce((sum, row) => sum + row.ns, 0);
  const reason = (row: OriginTimeRow) => `${row.reason ?? 'Unknown'}.`;
  return [
    { id: 'operator', title: 'Replayed operator', kind: 'text', value: row => row.operator, reason },
    { id: 'module', title: 'Module', kind: 'text', value: row => row.module, reason },
    { id: 'line', title: 'Line', kind: 'text', value: row => row.lines[0] ?? null, reason },
    { id: 'kernels', title: 'Kernels', kind: 'count', value: row => row.kernels },
    {
      id: 'ns',
      title: 'Total',
      kind: 'duration',
      value: row => row.ns,
      bar: { of: total, color: 'var(--c-kernel)', percent: true },
    },
  ];
}
