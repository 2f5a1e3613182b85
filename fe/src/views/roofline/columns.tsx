import type { RooflinePayload, RooflineRow } from '../../api/types';
import { formatNumber } from '../../base/format';
import type { Column } from '../../widgets/table/columns';
import { COLORS } from './select';
import css from './index.module.css';

const NAMES: Record<string, string> = { kernel: 'Kernel', module: 'Module' };

const unknown = (row: RooflineRow) => row.reason ?? undefined;

export function columnsOf(payload: RooflinePayload): Column<RooflineRow>[] {
  const columns: (Column<RooflineRow> | false)[] = [
    {
      id: 'name',
      title: NAMES[payload.group_by] ?? 'Operator',
      kind: 'text',
      value: row => row.name,
      width: 220,
      render: row => (
        <span className="clip" title={row.name}>
          {row.short_name}
        </span>
      ),
    },
    payload.group_by === 'shape' && {
      id: 'input_shape',
      title: 'Input shapes',
      kind: 'code',
      value: row => row.input_shape,
      width: 180,
    },
    { id: 'calls', title: 'Calls', kind: 'count', value: row => row.calls },
    {
      id: 'device_ns',
      title: 'Device time',
      kind: 'duration',
      value: row => row.device_ns,
      bar: { of: payload.device_ns, color: 'var(--c-kernel)', percent: true },
    },
    {
      id: 'flops_per_s',
      title: 'TFLOP/s',
      kind: 'number',
      value: row => (row.flops_per_s === null ? null : row.flops_per_s / 1e12),
      render: row => (row.flops_per_s === 0 ? 'no FLOPs' : formatNumber(row.flops_per_s! / 1e12)),
      reason: unknown,
    },
    {
      id: 'bytes_per_s',
      title: 'GB/s',
      kind: 'number',
      value: row => (row.bytes_per_s === null ? null : row.bytes_per_s / 1e9),
      reason: unknown,
    },
    {
      id: 'intensity',
      title: 'FLOP/byte',
      kind: 'number',
      value: row => row.intensity,
      reason: row => row.reason ?? 'It computes nothing.',
      width: 88,
    },
    {
      id: 'efficiency',
      title: 'Of the roof',
      kind: 'ratio',
      term: 'of_the_roof',
      value: row => row.efficiency,
      reason: unknown,
      bar: { of: 1, color: 'var(--c-cpu_exec)' },
      width: 124,
    },
    {
      id: 'bound',
      title: 'Bound by',
      kind: 'text',
      term: 'bound',
      value: row => row.bound,
      render: row => (
        <span className={css.bound} title={row.reason ?? undefined}>
          <i style={{ background: COLORS[row.bound] }} /> {row.bound}
        </span>
      ),
      width: 140,
      grow: false,
    },
    {
      id: 'saved_ns',
      title: 'Saved at the roof',
      kind: 'duration',
      term: 'saved_at_the_roof',
      value: row => row.saved_ns,
      reason: unknown,
      width: 148,
    },
    { id: 'flops', title: 'FLOPs', kind: 'count', value: row => row.flops, width: 150, hidden: true },
    { id: 'bytes', title: 'Bytes', kind: 'bytes', value: row => row.bytes, hidden: true },
  ];
  return columns.filter(column => column !== false);
}
