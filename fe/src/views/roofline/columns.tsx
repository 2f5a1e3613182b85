import type { RooflinePayload, RooflineRow } from '../../api/types';
import { Name } from '../../widgets/Name';
import type { Column } from '../../widgets/table/columns';
import { speedColumns } from '../_shared/speed';

const NAMES: Record<string, string> = { kernel: 'Kernel', module: 'Module', family: 'Kernel family' };

const unknown = (row: RooflineRow) => row.reason ?? undefined;

export function columnsOf(payload: RooflinePayload): Column<RooflineRow>[] {
  const columns: (Column<RooflineRow> | false)[] = [
    {
      id: 'name',
      title: NAMES[payload.group_by] ?? 'Operator',
      kind: 'text',
      value: row => row.name,
      width: 220,
      shownName: row => row.short_name,
      render: row => <Name text={row.short_name} title={row.name} />,
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
    ...speedColumns<RooflineRow>(row => row),
    {
      id: 'intensity',
      title: 'FLOP/byte',
      kind: 'number',
      value: row => row.intensity,
      reason: row => row.reason ?? 'It has no FLOPs.',
      width: 88,
    },
    {
      id: 'saved_ns',
      title: 'Saving at the roofline',
      kind: 'duration',
      term: 'roofline_saving',
      value: row => row.saved_ns,
      reason: unknown,
      width: 172,
    },
    { id: 'flops', title: 'FLOPs', kind: 'count', value: row => row.flops, width: 150, hidden: true },
    { id: 'bytes', title: 'Bytes', kind: 'bytes', value: row => row.bytes, hidden: true },
  ];
  return columns.filter(column => column !== false);
}
