// Columns of the module tree and of the table by class.
import type { FamilyPart, ModuleClass, ModuleRow } from '../../../api/types';
import { familyColor } from '../../../base/family';
import { formatRatio } from '../../../base/format';
import type { Phrase } from '../../../base/text';
import type { Column } from '../../../widgets/table/columns';
import { speedColumns } from '../speed';
import css from './columns.module.css';

const DEVICE = 'var(--c-kernel)';
const HOST = 'var(--c-cpu_exec)';

/** Columns that are off at first, because the table is wide. */
const HIDDEN_COLUMNS = ['flops_per_s', 'bytes_per_s', 'bound'];

interface TableShape {
  device: boolean;
  backward: boolean;
  deviceTime: number;
  hostTime: number;
  reasons: Record<string, readonly Phrase[]>;
}

/** Columns of the module tree, without those that would be empty in this trace. */
export function moduleColumns(shape: TableShape): Column<ModuleRow>[] {
  const { device, backward, reasons } = shape;
  const columns: (Column<ModuleRow> | false)[] = [
    { id: 'name', title: 'Module', kind: 'code', value: row => row.name, width: 230 },
    {
      id: 'calls',
      title: 'Calls',
      kind: 'count',
      value: row => row.calls,
      reason: reasons.calls,
      width: 56,
    },
    {
      id: 'operators',
      title: 'Operators',
      kind: 'count',
      value: row => row.operators,
      reason: reasons.operators,
      width: 92,
      term: 'module_operators',
    },
    device && {
      id: 'device_total_ns',
      title: 'Device total',
      kind: 'duration',
      value: row => row.device_total_ns,
      bar: { of: shape.deviceTime, color: DEVICE, percent: true },
    },
    device && familyColumn<ModuleRow>(row => row.families),
    device && {
      id: 'device_self_ns',
      title: 'Device self',
      kind: 'duration',
      value: row => row.device_self_ns,
    },
    device &&
      backward && {
        id: 'forward_device_total_ns',
        title: 'Forward',
        kind: 'duration',
        value: row => row.forward_device_total_ns,
      },
    device &&
      backward && {
        id: 'backward_device_total_ns',
        title: 'Backward',
        kind: 'duration',
        value: row => row.backward_device_total_ns,
        term: 'module_backward',
      },
    {
      id: 'host_total_ns',
      title: 'Host total',
      kind: 'duration',
      value: row => row.host_total_ns,
      reason: reasons.host_total_ns,
      bar: { of: shape.hostTime, color: HOST, percent: !device },
    },
    {
      id: 'host_self_ns',
      title: 'Host self',
      kind: 'duration',
      value: row => row.host_self_ns,
      term: 'module_host_self',
      reason: reasons.host_self_ns,
    },
    {
      id: 'operators_ns',
      title: 'Operators, host',
      kind: 'duration',
      value: row => row.operators_ns,
      reason: reasons.operators_ns,
      hidden: device,
      width: 112,
    },
    {
      id: 'host_mean_ns',
      title: 'Mean call',
      kind: 'duration',
      value: row => row.host_mean_ns,
      reason: reasons.host_mean_ns,
      hidden: device && backward,
    },
    backward && {
      id: 'backward_host_total_ns',
      title: 'Backward, host',
      kind: 'duration',
      value: row => row.backward_host_total_ns,
      reason: reasons.backward_host_total_ns,
      term: device ? undefined : 'module_backward',
      hidden: device,
      width: 124,
    },
    ...(reasons.speed ? [] : speedColumns<ModuleRow>(row => row.speed, { hidden: HIDDEN_COLUMNS })),
  ];
  return columns.filter(column => column !== false);
}

/** Columns of the table by class. */
export function classColumns(shape: TableShape): Column<ModuleClass>[] {
  const { device, backward, reasons } = shape;
  const columns: (Column<ModuleClass> | false)[] = [
    { id: 'name', title: 'Class', kind: 'code', value: row => row.name, width: 230 },
    { id: 'modules', title: 'Modules', kind: 'count', value: row => row.modules },
    { id: 'calls', title: 'Calls', kind: 'count', value: row => row.calls, reason: reasons.calls },
    {
      id: 'operators',
      title: 'Operators',
      kind: 'count',
      value: row => row.operators,
      reason: reasons.operators,
    },
    device && {
      id: 'device_self_ns',
      title: 'Device self',
      kind: 'duration',
      value: row => row.device_self_ns,
      bar: { of: shape.deviceTime, color: DEVICE, percent: true },
    },
    device && familyColumn<ModuleClass>(row => row.families),
    device &&
      backward && {
        id: 'forward_device_self_ns',
        title: 'Forward',
        kind: 'duration',
        value: row => row.forward_device_self_ns,
      },
    device &&
      backward && {
        id: 'backward_device_self_ns',
        title: 'Backward',
        kind: 'duration',
        value: row => row.backward_device_self_ns,
      },
    {
      id: 'host_exclusive_ns',
      title: 'Host exclusive',
      kind: 'duration',
      value: row => row.host_exclusive_ns,
      reason: reasons.host_exclusive_ns,
      term: 'module_host_exclusive',
      bar: { of: shape.hostTime, color: HOST, percent: !device },
    },
    backward && {
      id: 'backward_host_self_ns',
      title: 'Backward, host',
      kind: 'duration',
      value: row => row.backward_host_self_ns,
      reason: reasons.backward_host_self_ns,
      hidden: device,
      width: 124,
    },
    ...(reasons.speed ? [] : speedColumns<ModuleClass>(row => row.speed, { hidden: HIDDEN_COLUMNS })),
  ];
  return columns.filter(column => column !== false);
}

export const totalHost = (rows: readonly ModuleRow[]): number =>
  rows.reduce((sum, row) => sum + (row.host_total_ns ?? 0), 0);

/** The kernel families of a row as a bar of their shares; a filter of the table finds them by name. */
function familyColumn<R>(familiesOf: (row: R) => readonly FamilyPart[]): Column<R> {
  return {
    id: 'families',
    title: 'Kernel families',
    kind: 'text',
    value: row => familyText(familiesOf(row)) || null,
    reason: 'It launched no device work.',
    render: row => <FamilyShares families={familiesOf(row)} />,
    width: 140,
    grow: false,
  };
}

function FamilyShares({ families }: { families: readonly FamilyPart[] }) {
  return (
    <span className={css.shares} title={familyText(families)}>
      {families.map(({ family, device_ns }) => (
        <i key={family} style={{ flexGrow: device_ns, background: familyColor(family) }} />
      ))}
    </span>
  );
}

/** "matrix product 82%, norm 18%". */
function familyText(families: readonly FamilyPart[]): string {
  const total = families.reduce((sum, part) => sum + part.device_ns, 0);
  return families.map(part => `${part.family} ${formatRatio(part.device_ns / total)}`).join(', ');
}
