import { useMemo } from 'react';
import type { OverlapPayload } from '../../api/types';
import { useTableState } from '../../state/table';
import type { Column } from '../../widgets/table/columns';
import { DataTable } from '../../widgets/table/DataTable';
import css from './index.module.css';

type Row = OverlapPayload['ranks'][number];

interface Props {
  payload: OverlapPayload;
  onOpen: (link: string) => void;
}

/** Means per iteration of each rank. */
export function OverlapRanks({ payload, onOpen }: Props) {
  const table = useTableState();
  const columns = useMemo(() => rankColumns(payload.ranks), [payload]);
  return (
    <div className={css.ranks}>
      <DataTable
        name="overlap-ranks"
        noun="rank"
        rows={payload.ranks}
        columns={columns}
        rowKey={row => row.worker}
        {...table}
        placeholder="Filter ranks"
        onOpen={row => row.link && onOpen(row.link)}
        foot="Means per iteration. Double-click a rank to open its iteration with the most exposed communication."
      />
    </div>
  );
}

function rankColumns(rows: readonly Row[]): Column<Row>[] {
  const time = (id: keyof Row, title: string, more: Partial<Column<Row>> = {}): Column<Row> => ({
    id,
    title,
    kind: 'duration',
    value: row => row[id] as number | null,
    reason: row => row.reason ?? undefined,
    ...more,
  });
  const exposed = Math.max(...rows.map(row => row.exposed_ns ?? 0), 1);
  return [
    { id: 'worker', title: 'Rank', kind: 'text', value: row => row.worker, width: 110 },
    { id: 'iterations', title: 'Iterations', kind: 'count', value: row => row.iterations, width: 72 },
    time('total_ns', 'Iteration'),
    time('compute_ns', 'Computation'),
    time('allreduce_ns', 'All-reduce'),
    time('reducescatter_ns', 'Reduce-scatter', { width: 104 }),
    time('allgather_ns', 'All-gather'),
    time('overlap_ns', 'Overlap', { term: 'stream_overlap' }),
    time('exposed_ns', 'Exposed', { bar: { of: exposed, color: 'var(--c-communication)' } }),
    time('idle_ns', 'Idle'),
    {
      id: 'overlap_ratio',
      title: 'Overlap / computation',
      kind: 'ratio',
      value: row => row.overlap_ratio,
      width: 150,
    },
    {
      id: 'hidden_ratio',
      title: 'Overlapped communication',
      kind: 'ratio',
      value: row => row.hidden_ratio,
      width: 176,
    },
    time('allreduce_exposed_ns', 'Exposed all-reduce', { hidden: true }),
    time('reducescatter_exposed_ns', 'Exposed reduce-scatter', { hidden: true }),
    time('allgather_exposed_ns', 'Exposed all-gather', { hidden: true }),
  ];
}
