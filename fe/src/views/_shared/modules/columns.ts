import type { ModuleRow } from '../../../api/types';
import type { Column } from '../../../widgets/table/columns';
import type { ClassRow } from './select';

const DEVICE = 'var(--c-kernel)';
const HOST = 'var(--c-cpu_exec)';

interface Shape {
  device: boolean;
  backward: boolean;
  deviceTime: number;
  hostTime: number;
  reasons: Record<string, string>;
}

/** Columns of the module tree; those that would be empty in this trace are left out. */
export function moduleColumns(shape: Shape): Column<ModuleRow>[] {
  const { device, backward, reasons } = shape;
  const columns: (Column<ModuleRow> | false)[] = [
    { id: 'name', title: 'Module', kind: 'code', value: row => row.name, width: 230 },
    {
      id: 'occurrences',
      title: 'Calls',
      kind: 'count',
      value: row => row.occurrences,
      reason: reasons.occurrences,
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
  ];
  return columns.filter(column => column !== false);
}

/** Columns of the sums by class. */
export function classColumns(shape: Shape): Column<ClassRow>[] {
  const { device, backward } = shape;
  const columns: (Column<ClassRow> | false)[] = [
    { id: 'name', title: 'Class', kind: 'code', value: row => row.name, width: 230 },
    { id: 'instances', title: 'Modules', kind: 'count', value: row => row.instances },
    { id: 'occurrences', title: 'Calls', kind: 'count', value: row => row.occurrences },
    { id: 'operators', title: 'Operators', kind: 'count', value: row => row.operators },
    device && {
      id: 'device_self_ns',
      title: 'Device self',
      kind: 'duration',
      value: row => row.device,
      bar: { of: shape.deviceTime, color: DEVICE, percent: true },
    },
    device && backward && { id: 'forward', title: 'Forward', kind: 'duration', value: row => row.forward },
    device && backward && { id: 'backward', title: 'Backward', kind: 'duration', value: row => row.backward },
    {
      id: 'host',
      title: 'Host, own',
      kind: 'duration',
      value: row => row.host,
      term: 'module_host_own',
      bar: { of: shape.hostTime, color: HOST, percent: !device },
    },
    backward && {
      id: 'backward_host',
      title: 'Backward, host',
      kind: 'duration',
      value: row => row.backwardHost,
      hidden: device,
      width: 124,
    },
  ];
  return columns.filter(column => column !== false);
}

export const totalHost = (rows: readonly ModuleRow[]): number =>
  rows.reduce((sum, row) => sum + row.host_total_ns, 0);
