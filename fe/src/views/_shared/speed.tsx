// Achieved rates of a row, how close they come to the roofline, and what bounds them.
import type { Speed } from '../../api/types';
import { formatNumber } from '../../base/format';
import type { Column } from '../../widgets/table/columns';
import css from './speed.module.css';

export type Bound = Speed['bound'];

/** The color of each bound, the same in every view. */
export const BOUND_COLORS: Record<Bound, string> = {
  compute: 'var(--c-kernel)',
  memory: 'var(--c-memcpy)',
  latency: 'var(--c-dataloader)',
  launch: 'var(--c-runtime)',
  communication: 'var(--c-communication)',
  unknown: 'var(--c-other)',
};

interface Options {
  /** Columns that are off until they are switched on. */
  hidden?: readonly string[];
}

const MEASURED = 'FLOPs or bytes of some of its calls come from hardware counters.';

/** Columns of speed, share of roofline and bound; a missing value gives its reason. */
export function speedColumns<R>(
  speedOf: (row: R) => Speed | null,
  { hidden = [] }: Options = {},
): Column<R>[] {
  const reason = (row: R) => speedOf(row)?.reason ?? undefined;
  const columns: Column<R>[] = [
    {
      id: 'flops_per_s',
      title: 'TFLOP/s',
      kind: 'number',
      value: row => scaled(speedOf(row)?.flops_per_s, 1e12),
      render: row => {
        const speed = speedOf(row)!;
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
      value: row => scaled(speedOf(row)?.bytes_per_s, 1e9),
      render: row => {
        const speed = speedOf(row)!;
        const shown = formatNumber((speed.bytes_per_s ?? 0) / 1e9);
        return speed.measured ? <span title={MEASURED}>{shown} *</span> : shown;
      },
      reason,
    },
    {
      id: 'efficiency',
      title: 'Share of roofline',
      kind: 'ratio',
      term: 'roofline_share',
      value: row => speedOf(row)?.efficiency,
      reason,
      bar: { of: 1, color: 'var(--c-cpu_exec)' },
      width: 140,
    },
    {
      id: 'bound',
      title: 'Bound by',
      kind: 'text',
      term: 'bound',
      value: row => speedOf(row)?.bound,
      render: row => {
        const speed = speedOf(row)!;
        return (
          <span className={css.bound} title={speed.reason ?? undefined}>
            <i style={{ background: BOUND_COLORS[speed.bound] }} /> {speed.bound}
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
