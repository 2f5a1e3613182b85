import { useMemo } from 'react';
import type { HookRow, LightningPayload } from '../../api/types';
import { useSelection } from '../../state/selection';
import { useTableState } from '../../state/table';
import { Answer } from '../../widgets/Answer';
import { Sentence } from '../../widgets/Sentence';
import type { Column } from '../../widgets/table/columns';
import { DataTable } from '../../widgets/table/DataTable';
import { Choice } from '../../widgets/inputs/Choice';
import { Detail } from '../_shared/modules/Detail';
import { Flame } from '../_shared/modules/Flame';
import { Rest } from '../_shared/modules/Rest';
import { onTimeline, pathTo } from '../_shared/modules/select';
import { Tree } from '../_shared/modules/Tree';
import grid from '../_shared/modules/Grid.module.css';

const SHOWS = [
  ['hooks', 'Hooks'],
  ['modules', 'Modules'],
  ['flame', 'Flame graph'],
] as const;

export default function LightningView({ payload, crumb }: { payload: LightningPayload; crumb: string }) {
  const { selection, select } = useSelection();
  const { params } = selection;
  const first = payload.hooks.length > 0 ? 'hooks' : 'modules';
  const show = SHOWS.find(([name]) => name === params.show)?.[0] ?? first;
  const path = params.place === undefined ? [] : pathTo(payload.rows, Number(params.place));
  const onPlace = (place: number | undefined) => {
    const { place: _, ...others } = params;
    select({ params: place === undefined ? others : { ...others, place: String(place) } });
  };
  const missing = show === 'hooks' ? payload.reasons.hooks : payload.reasons.rows;
  return (
    <>
      <Answer crumb={crumb} why={payload.details.length > 0 && <Sentence text={payload.details} />}>
        <Sentence text={payload.headline} />
      </Answer>
      <Choice
        name="Show"
        value={show}
        options={SHOWS}
        onPick={picked => {
          const { show: _, place: __, q: ___, sort: ____, ...others } = params;
          select({ params: picked === first ? others : { ...others, show: picked } });
        }}
      />
      {missing && <p className="dim">{missing}</p>}
      <div className={`${grid.grid} ${path.length > 0 && show !== 'hooks' ? grid.withDetail : ''}`}>
        {!missing && show === 'hooks' && (
          <div className={grid.table}>
            <Hooks payload={payload} />
          </div>
        )}
        {!missing && show === 'modules' && (
          <div className={grid.table}>
            <Tree
              name="lightning-modules"
              rows={payload.rows}
              classes={payload.classes}
              deviceTime={payload.device_ns}
              hasBackward={payload.has_backward}
              reasons={payload.reasons}
              place={path.length > 0 ? Number(params.place) : undefined}
              onPlace={onPlace}
              foot={<Rest payload={payload} />}
            />
          </div>
        )}
        {!missing && show === 'flame' && (
          <Flame tab="lightning" hasDevice={payload.has_device} onPlace={onPlace} />
        )}
        {path.length > 0 && show !== 'hooks' && (
          <Detail
            key={params.place}
            tab="lightning"
            path={path}
            hasDevice={payload.has_device}
            onPlace={onPlace}
          />
        )}
      </div>
    </>
  );
}

function Hooks({ payload }: { payload: LightningPayload }) {
  const { select } = useSelection();
  const table = useTableState();
  const columns = useMemo(() => hookColumns(payload), [payload]);
  const unfolded = useMemo(() => allOpen(payload.hooks), [payload.hooks]);
  const open = (row: HookRow | undefined) => {
    if (row && row.event !== null) {
      select(onTimeline(row.event, false));
    }
  };
  return (
    <DataTable
      name="lightning-hooks"
      noun="outermost hooks"
      rows={payload.hooks}
      columns={columns}
      rowKey={row => String(row.place)}
      childRows={row => row.children}
      unfolded={unfolded}
      {...table}
      placeholder="Filter hooks"
      onOpen={open}
      foot="a double click shows the longest call on the timeline"
    />
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
