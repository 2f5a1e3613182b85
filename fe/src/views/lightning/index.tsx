import { useMemo } from 'react';
import type { HookRow, LightningPayload } from '../../api/types';
import { useSelection } from '../../state/selection';
import { useTableState } from '../../state/table';
import type { Column } from '../../widgets/table/columns';
import { DataTable } from '../../widgets/table/DataTable';
import { ModulesPage } from '../_shared/modules/ModulesPage';
import { timelineTarget } from '../_shared/modules/select';
import grid from '../_shared/modules/Grid.module.css';

export default function LightningView({ payload, crumb }: { payload: LightningPayload; crumb: string }) {
  const { hooks, rows } = payload.reasons;
  return (
    <ModulesPage
      tab="lightning"
      name="lightning-modules"
      payload={payload}
      crumb={crumb}
      shows={[
        { name: 'hooks', title: 'Hooks', content: <Hooks payload={payload} />, missing: hooks },
        { name: 'modules', title: 'Modules', content: 'tree', missing: rows },
        { name: 'flame', title: 'Flame graph', content: 'flame', missing: rows },
      ]}
      first={payload.hooks.length > 0 ? 'hooks' : 'modules'}
    />
  );
}

function Hooks({ payload }: { payload: LightningPayload }) {
  const { select } = useSelection();
  const table = useTableState();
  const columns = useMemo(() => hookColumns(payload), [payload]);
  const unfolded = useMemo(() => allOpen(payload.hooks), [payload.hooks]);
  const open = (row: HookRow | undefined) => {
    if (row && row.event !== null) {
      select(timelineTarget(row.event, false));
    }
  };
  return (
    <div className={grid.table}>
      <DataTable
        name="lightning-hooks"
        noun="outermost hook"
        rows={payload.hooks}
        columns={columns}
        rowKey={row => String(row.place)}
        childRows={row => row.children}
        initiallyExpanded={unfolded}
        {...table}
        placeholder="Filter hooks"
        onOpen={open}
        foot="Double-click a hook to show its longest call on the timeline."
      />
    </div>
  );
}

function allOpen(rows: readonly HookRow[]): string[] {
  return rows.flatMap(row => (row.children.length > 0 ? [String(row.place), ...allOpen(row.children)] : []));
}

function hookColumns(payload: LightningPayload): Column<HookRow>[] {
  const hostTime = payload.hooks.reduce((sum, row) => sum + row.host_total_ns, 0);
  const columns: (Column<HookRow> | false)[] = [
    { id: 'name', title: 'Hook', kind: 'code', value: row => row.name, width: 320 },
    { id: 'owner', title: 'Owner', kind: 'text', value: row => row.owner, width: 140, grow: false },
    { id: 'calls', title: 'Calls', kind: 'count', value: row => row.calls, width: 56 },
    {
      id: 'host_total_ns',
      title: 'Host total',
      kind: 'duration',
      value: row => row.host_total_ns,
      bar: { of: hostTime, color: 'var(--c-cpu_exec)', percent: true },
    },
    {
      id: 'host_self_ns',
      title: 'Host self',
      kind: 'duration',
      value: row => row.host_self_ns,
      term: 'hook_self',
    },
    { id: 'operators_ns', title: 'Operators', kind: 'duration', value: row => row.operators_ns },
    { id: 'host_mean_ns', title: 'Mean call', kind: 'duration', value: row => row.host_mean_ns },
    payload.has_device && {
      id: 'device_total_ns',
      title: 'Device total',
      kind: 'duration',
      value: row => row.device_total_ns,
      bar: { of: payload.device_ns, color: 'var(--c-kernel)', percent: true },
    },
    payload.has_device && {
      id: 'device_self_ns',
      title: 'Device self',
      kind: 'duration',
      value: row => row.device_self_ns,
    },
  ];
  return columns.filter(column => column !== false);
}
