import type { ModuleClass, ModuleRow } from '../../../api/types';
import type { Column } from '../../../widgets/table/columns';
import { speedColumns } from '../speed/columns';
import type { Phrase } from '../../../base/text';
import { familyColumn } from './families';

const DEVICE = 'var(--c-kernel)';
const HOST = 'var(--c-cpu_exec)';

/** The table is wide already. */
const HIDDEN = ['flops_per_s', 'bytes_per_s', 'bound'];

interface Shape {
  device: boolean;
  backward: boolean;
  deviceTime: number;
  hostTime: number;
  reasons: Record<string, readonly Phrase[]>;
}

/** Columns of the module tree; those that would be empty in this trace are left out. */
export function moduleColumns(shape: Shape): Column<ModuleRow>[] {
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
      term: device ? undefined : 'module_backward',
      hidden: device,
      width: 124,
    },
    ...(reasons.speed ? [] : speedColumns<ModuleRow>(row => row.speed, { hidden: HIDDEN })),
  ];
  return columns.filter(column => column !== false);
}

/** Columns of the sums by class. */
export function classColumns(shape: Shape): Column<ModuleClass>[] {
  const { device, backward, reasons } = shape;
  const columns: (Column<ModuleClass> | false)[] = [
    { id: 'name', title: 'Class', kind: 'code', value: row => row.name, width: 230 },
    { id: 'modules', title: 'Modules', kind: 'count', value: row => row.modules },
    { id: 'calls', title: 'Calls', kind: 'count', value: row => row.calls },
    { id: 'operators', title: 'Operators', kind: 'count', value: row => row.operators },
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
      term: 'module_host_exclusive',
      bar: { of: shape.hostTime, color: HOST, percent: !device },
    },
    backward && {
      id: 'backward_host_self_ns',
      title: 'Backward, host',
      kind: 'duration',
      value: row => row.backward_host_self_ns,
      hidden: device,
      width: 124,
    },
    ...(reasons.speed ? [] : speedColumns<ModuleClass>(row => row.speed, { hidden: HIDDEN })),
  ];
  return columns.filter(column => column !== false);
}

export const totalHost = (rows: readonly ModuleRow[]): number =>
  rows.reduce((sum, row) => sum + row.host_total_ns, 0);
