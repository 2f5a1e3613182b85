// What the calls of each operator allocate and release.
import type { MemoryOperators } from '../../api/types';
import { formatBytes, formatSignedBytes, plural } from '../../base/format';
import { useTableState } from '../../state/table';
import { Term } from '../../widgets/Term';
import type { Column } from '../../widgets/table/columns';
import { DataTable } from '../../widgets/table/DataTable';

type Row = MemoryOperators['rows'][number];

const COLUMNS: Column<Row>[] = [
  { id: 'name', title: 'Operator', kind: 'text', value: row => row.name },
  { id: 'calls', title: 'Calls', kind: 'count', value: row => row.calls },
  {
    id: 'size_increase_bytes',
    title: 'Size increase',
    kind: 'bytes',
    width: 110,
    value: row => row.size_increase_bytes,
    term: 'memory_increase',
  },
  {
    id: 'self_size_increase_bytes',
    title: 'Self increase',
    kind: 'bytes',
    width: 104,
    value: row => row.self_size_increase_bytes,
  },
  {
    id: 'allocation_count',
    title: 'Allocations',
    kind: 'count',
    width: 88,
    value: row => row.allocation_count,
  },
  { id: 'self_allocation_count', title: 'Self', kind: 'count', value: row => row.self_allocation_count },
  { id: 'allocation_size_bytes', title: 'Allocated', kind: 'bytes', value: row => row.allocation_size_bytes },
  {
    id: 'self_allocation_size_bytes',
    title: 'Self allocated',
    kind: 'bytes',
    width: 104,
    value: row => row.self_allocation_size_bytes,
  },
];

interface Props {
  operators: MemoryOperators;
  /** Whether they are those of a range that is selected in the chart. */
  ranged: boolean;
  onEvent: (event: number) => void;
  before: React.ReactNode;
}

export function ByOperator({ operators, ranged, onEvent, before }: Props) {
  const table = useTableState({ id: 'self_size_increase_bytes', descending: true });
  const { outside } = operators;
  return (
    <DataTable
      name="memory-operators"
      rows={operators.rows}
      columns={COLUMNS}
      rowKey={row => row.name}
      onOpen={row => onEvent(row.event)}
      {...table}
      placeholder={`Filter ${plural(operators.rows.length, 'operator')}`}
      before={before}
      noun="operator"
      empty={
        ranged
          ? 'No operator allocates or releases memory in this range. Select another one in the chart.'
          : 'No operator allocates or releases memory.'
      }
      foot={
        <>
          outside operators <Term id="memory_outside" /> {formatSignedBytes(outside.size_increase_bytes)} in{' '}
          {plural(outside.allocation_count, 'allocation')} of {formatBytes(outside.allocation_size_bytes)}
        </>
      }
    />
  );
}
