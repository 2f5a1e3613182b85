import { useMemo, useState } from 'react';
import type { MemoryOperationRow } from '../../api/types';
import { plural } from '../../base/format';
import type { TableSearch, TableSort } from '../../state/table';
import type { Column } from '../../widgets/table/columns';
import { DataTable } from '../../widgets/table/DataTable';
import css from './MemoryOperations.module.css';

interface Props {
  rows: MemoryOperationRow[];
  onOpen: (row: MemoryOperationRow) => void;
}

const NO_BYTES = 'The profiler didn’t record the bytes.';

/** Copies and memsets by name. */
export function MemoryOperations({ rows, onOpen }: Props) {
  const [sort, setSort] = useState<TableSort | undefined>({ id: 'total_ns', descending: true });
  const [search, setSearch] = useState<TableSearch>({ text: '', regex: false });
  const total = rows.reduce((sum, row) => sum + row.total_ns, 0);
  const columns = useMemo<Column<MemoryOperationRow>[]>(
    () => [
      { id: 'name', title: 'Copy or memset', kind: 'text', value: row => row.name },
      { id: 'calls', title: 'Calls', kind: 'count', value: row => row.calls },
      {
        id: 'bytes',
        title: 'Bytes',
        kind: 'bytes',
        value: row => row.bytes,
        reason: NO_BYTES,
      },
      {
        id: 'total_ns',
        title: 'Total',
        kind: 'duration',
        value: row => row.total_ns,
        bar: { of: total, color: 'var(--c-memcpy)', percent: true },
      },
      { id: 'mean_ns', title: 'Mean', kind: 'duration', value: row => row.mean_ns },
      { id: 'max_ns', title: 'Max', kind: 'duration', value: row => row.max_ns },
      {
        id: 'bandwidth',
        title: 'Bandwidth',
        kind: 'rate',
        term: 'bandwidth',
        value: row => row.bandwidth,
        reason: row => (row.bytes === null ? NO_BYTES : 'It took no time.'),
        width: 116,
      },
    ],
    [total],
  );
  return (
    <div className={css.operations}>
      <DataTable
        name="copies"
        rows={rows}
        columns={columns}
        rowKey={row => row.name}
        sort={sort}
        onSort={setSort}
        search={search}
        onSearch={setSearch}
        hotkey={false}
        placeholder={`Filter ${plural(rows.length, 'copy or memset', 'copies and memsets')}`}
        noun="copy or memset"
        nounPlural="copies and memsets"
        onOpen={onOpen}
        onSelect={row => row && onOpen(row)}
      />
    </div>
  );
}
