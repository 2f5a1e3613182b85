// What hardware counters counted for the kernels of each operator, beside what the shapes say.
import { useMemo, useState } from 'react';
import type { CounterRow, RooflineCounters } from '../../api/types';
import { formatCount, formatNumber, plural } from '../../base/format';
import { useSelection } from '../../state/selection';
import type { TableSearch, TableSort } from '../../state/table';
import { Name } from '../../widgets/Name';
import { Panel } from '../../widgets/Panel';
import type { Column } from '../../widgets/table/columns';
import { DataTable } from '../../widgets/table/DataTable';
import { Term } from '../../widgets/Term';
import css from './HardwareCounters.module.css';

export function HardwareCounters({ counters }: { counters: RooflineCounters }) {
  const { select } = useSelection();
  const [sort, setSort] = useState<TableSort | undefined>({ id: 'flops', descending: true });
  const [search, setSearch] = useState<TableSearch>({ text: '', regex: false });
  const columns = useMemo(() => columnsOf(counters), [counters]);
  const open = (row: CounterRow) => select({ view: 'trace', params: { event: String(row.event) } });
  const left = counters.left_out > 0 ? `; ${plural(counters.left_out, 'row')} left out` : '';
  return (
    <Panel
      title={
        <>
          Hardware counters <Term id="counters" />
        </>
      }
      note={`${formatCount(counters.ranges)} counted kernels${left}`}
    >
      <p className="dim">{counters.source}</p>
      {counters.note !== null && <p role="note">{counters.note}</p>}
      <div className={css.table} data-part="counters">
        <DataTable
          name="hardware counters"
          rows={counters.rows}
          columns={columns}
          rowKey={row => String(row.event)}
          sort={sort}
          onSort={setSort}
          search={search}
          onSearch={setSearch}
          hotkey={false}
          placeholder={`Filter ${plural(counters.rows.length, 'row')}`}
          noun="row"
          onOpen={open}
          onSelect={row => row && open(row)}
        />
      </div>
    </Panel>
  );
}

function columnsOf({ names, note }: RooflineCounters): Column<CounterRow>[] {
  const unjoined = note ?? 'It was launched outside any operator.';
  const gflop = (value: number | null) => (value === null ? null : value / 1e9);
  return [
    {
      id: 'name',
      title: 'Kernel',
      kind: 'text',
      value: row => row.name,
      shownName: row => row.short_name,
      render: row => <Name text={row.short_name} title={row.name} />,
    },
    { id: 'operator', title: 'Operator', kind: 'text', value: row => row.operator, reason: unjoined },
    {
      id: 'outermost',
      title: 'Outermost operator',
      kind: 'text',
      value: row => row.outermost,
      reason: unjoined,
    },
    { id: 'calls', title: 'Calls', kind: 'count', value: row => row.calls },
    {
      id: 'flops',
      title: 'GFLOP counted',
      kind: 'number',
      value: row => gflop(row.flops),
      reason: row => row.reason ?? undefined,
      width: 116,
    },
    {
      id: 'modeled_flops',
      title: 'GFLOP modeled',
      kind: 'number',
      value: row => gflop(row.modeled_flops),
      reason: row => row.modeled_reason ?? undefined,
      width: 120,
    },
    {
      id: 'bytes',
      title: 'Bytes counted',
      kind: 'bytes',
      value: row => row.bytes,
      reason: row => row.reason ?? undefined,
      width: 110,
    },
    {
      id: 'modeled_bytes',
      title: 'Bytes modeled',
      kind: 'bytes',
      value: row => row.modeled_bytes,
      reason: row => row.modeled_reason ?? undefined,
      width: 114,
    },
    ...names.map((name, at): Column<CounterRow> => ({
      id: `counter ${name}`,
      title: name,
      kind: 'number',
      value: row => row.values[at],
      render: row => formatNumber(row.values[at] ?? 0),
      reason: 'This counter is missing for some of these kernels.',
      width: 160,
      hidden: true,
    })),
  ];
}
