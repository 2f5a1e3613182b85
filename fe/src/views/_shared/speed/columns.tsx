import type { Speed } from '../../../api/types';
import { formatNumber } from '../../../base/format';
import type { Column } from '../../../widgets/table/columns';
import { COLORS } from './bounds';
import css from './Bound.module.css';

interface Options {
  /** Columns that are off until they are switched on. */
  hidden?: readonly string[];
}

const MEASURED = 'Hardware counters tell FLOPs or bytes of some of its calls.';

/** How fast a row works, how close that is to its roof, and what bounds it; what is not known says why. */
export function speedColumns<R>(of: (row: R) => Speed | null, { hidden = [] }: Options = {}): Column<R>[] {
  const reason = (row: R) => of(row)?.reason ?? undefined;
  const columns: Column<R>[] = [
    {
      id: 'flops_per_s',
      title: 'TFLOP/s',
      kind: 'number',
      value: row => scaled(of(row)?.flops_per_s, 1e12),
      render: row => {
        const speed = of(row)!;
        const rate = speed.flops_per_s ?? 0;
        const shown = rate === 0 ? 'no FLOPs' : formatNumber(rate / 1e12);
        return speed.measured ? <span title={MEASURED}>{shown} *</span> : shown;
      },
      reason,
    },
    {
      id: 'bytes_per_s',
      title: 'GB/s',
      kind: 'number',
      value: row => scaled(of(row)?.bytes_per_s, 1e9),
      render: row => {
        const speed = of(row)!;
        const shown = formatNumber((speed.bytes_per_s ?? 0) / 1e9);
        return speed.measured ? <span title={MEASURED}>{shown} *</span> : shown;
      },
      reason,
    },
    {
      id: 'efficiency',
      title: 'Of the roof',
      kind: 'ratio',
      term: 'roofline_share',
      value: row => of(row)?.efficiency,
      reason,
      bar: { of: 1, color: 'var(--c-cpu_exec)' },
      width: 124,
    },
    {
      id: 'bound',
      title: 'Bound by',
      kind: 'text',
      term: 'bound',
      value: row => of(row)?.bound,
      render: row => {
        const speed = of(row)!;
        return (
          <span className={css.bound} title={speed.reason ?? undefined}>
            <i style={{ background: COLORS[speed.bound] }} /> {speed.bound}
          </span>
        );
      },
      width: 140,
      grow: false,
    },
  ];
  return columns.map(column => ({ ...column, hidden: hidden.includes(column.id) }));
}

const scaled = (value: number | null | undefined, unit: number): number | null =>
  value === null || value === undefined ? null : value / unit;
