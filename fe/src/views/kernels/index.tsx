import { sum } from 'd3-array';
import { useMemo } from 'react';
import type { KernelRow, KernelsPayload, MemoryOperationRow } from '../../api/types';
import { familyColor } from '../../base/family';
import { deviceName, formatDuration, plural } from '../../base/format';
import { useSelection } from '../../state/selection';
import { useTableState } from '../../state/table';
import { Button } from '../../widgets/inputs/Button';
import { Answer } from '../../widgets/Answer';
import { Sentence } from '../../widgets/Sentence';
import { SavePicture } from '../../widgets/charts/SavePicture';
import { Donut } from '../../widgets/charts/Donut';
import { Select } from '../../widgets/inputs/Select';
import { TABLE_ROW_HEIGHT, type Column } from '../../widgets/table/columns';
import { DataTable } from '../../widgets/table/DataTable';
import { KernelDetail } from './KernelDetail';
import { Engines } from './Engines';
import { MemoryOperations } from './MemoryOperations';
import { kernelNoun, filterByCores, originText, kernelKey, totalText } from './select';
import { NameCell } from './NameCell';
import { StepFilter, StreamFilter, withAll } from '../_shared/filters';
import { useSelectableRows } from '../_shared/rows/useSelectableRows';
import { speedColumns } from '../_shared/speed';
import splitCss from '../../widgets/table/Split.module.css';

const GROUPINGS = [
  ['name', 'kernel'],
  ['launch', 'kernel + operator + launch'],
  ['family', 'family'],
] as const;

const ORIGINS = [
  ['', 'all'],
  ['known', 'known'],
  ['unknown', 'unknown'],
] as const;

const PIE_LIMITS = [
  ['5', 'top 5'],
  ['10', 'top 10'],
  ['20', 'top 20'],
  ['0', 'hidden'],
] as const;

export default function KernelsView({ payload, crumb }: { payload: KernelsPayload; crumb: string }) {
  const { selection, select } = useSelection();
  const { params } = selection;
  const table = useTableState({ id: 'total_ns', descending: true });
  const byLaunch = payload.group_by === 'launch';
  const columns = useMemo(
    () => columnsOf(payload, row => select({ view: 'trace', params: { event: String(row.event) } })),
    [payload, select],
  );
  const keyOf = useMemo(() => (row: KernelRow) => kernelKey(row, byLaunch), [byLaunch]);
  const listed = useMemo(() => filterByCores(payload.rows, params.cores), [payload, params.cores]);
  const { setParams, pick, chosen, close, table: rows } = useSelectableRows(listed, keyOf);
  const shares = useMemo(
    () => payload.rows.map(row => ({ key: keyOf(row), title: row.short_name, value: row.total_ns })),
    [payload, keyOf],
  );
  const top = Number(params.top ?? '5');
  const cores = payload.tensor_cores;
  const devices = [...new Set(payload.streams.map(stream => stream.device))];
  const streams = payload.streams.filter(
    stream => params.device === undefined || String(stream.device) === params.device,
  );
  const filtered = ['step', 'device', 'stream', 'operator', 'family', 'origin', 'cores'].filter(
    name => params[name],
  );
  return (
    <div className={`${splitCss.view} fill`}>
      <Answer
        crumb={params.operator ? `${crumb} · launched by ${params.operator}` : crumb}
        why={totalText(payload)}
      >
        <Sentence text={payload.headline} />
      </Answer>
      {payload.engines && (
        <Engines
          engines={payload.engines}
          onOpen={event => select({ view: 'trace', params: { event: String(event) } })}
        />
      )}
      {top > 0 && payload.rows.length > 0 && (
        <div className={`panel ${splitCss.pies}`}>
          <Donut
            title="Kernel time"
            shares={shares}
            top={top}
            color="var(--c-kernel)"
            format={formatDuration}
            onPick={pick}
            selectedKey={params.select}
          />
          <Donut
            title="Families"
            note="kernels, copies and memsets"
            shares={payload.families.map(({ family, total_ns }) => ({
              key: family,
              title: family,
              value: total_ns,
            }))}
            top={top}
            color={familyColor}
            format={formatDuration}
            onPick={family => setParams({ family: params.family === family ? '' : family, select: '' })}
            selectedKey={params.family}
          />
          <Donut
            title="Tensor Cores"
            note="kernel time"
            shares={[
              { key: 'used', title: 'used', value: cores.used_ns },
              { key: 'not used', title: 'not used', value: cores.not_used_ns },
              { key: 'unknown', title: 'not shown by the name', value: cores.unknown_ns },
            ]}
            top={3}
            color="var(--c-cpu_exec)"
            format={formatDuration}
            onPick={key =>
              setParams({
                cores: params.cores === key ? '' : key,
                group_by: payload.group_by === 'family' ? '' : payload.group_by,
                select: '',
              })
            }
            selectedKey={params.cores}
          />
          {payload.memory_operations.length > 0 && (
            <Donut
              title="Copies and memsets"
              shares={payload.memory_operations.map(row => ({
                key: row.name,
                title: row.name,
                value: row.total_ns,
              }))}
              top={top}
              color="var(--c-memcpy)"
              format={formatDuration}
              onPick={name => select({ view: 'trace', params: { find: name } })}
            />
          )}
          <div className={splitCss.save}>
            <SavePicture name="kernel_shares" />
          </div>
        </div>
      )}
      <div
        className={`${splitCss.split} ${chosen ? splitCss.withDetail : ''}`}
        style={{ minHeight: Math.min(320, TABLE_FRAME + TABLE_ROW_HEIGHT * listed.length) }}
      >
        <DataTable
          name="kernels"
          {...rows}
          columns={columns}
          {...table}
          placeholder={`Filter ${plural(payload.rows.length, ...kernelNoun(payload))}`}
          noun={kernelNoun(payload)[0]}
          nounPlural={kernelNoun(payload)[1]}
          before={
            <>
              <Select
                label="Rows"
                value={GROUPINGS.find(([by]) => by === payload.group_by)?.[0] ?? 'name'}
                options={GROUPINGS}
                onChange={group_by => setParams({ group_by, select: '' })}
              />
              {payload.families.length > 1 && (
                <Select
                  label="Family"
                  value={params.family ?? ''}
                  options={withAll(payload.families.map(({ family }) => family))}
                  onChange={family => setParams({ family, select: '' })}
                />
              )}
              {(!payload.reasons.origin || params.origin) && (
                <Select
                  label="Origin"
                  value={params.origin ?? ''}
                  options={ORIGINS}
                  onChange={origin => setParams({ origin, select: '' })}
                />
              )}
              <StepFilter steps={payload.steps} value={params.step} onChange={step => setParams({ step })} />
              {devices.length > 1 && (
                <Select
                  label="Device"
                  value={params.device ?? ''}
                  options={[
                    ['', 'all'],
                    ...devices.map(id => [String(id), deviceName(payload.device_type, id)] as const),
                  ]}
                  onChange={device => setParams({ device, stream: '' })}
                />
              )}
              <StreamFilter
                streams={streams}
                value={params.stream}
                onChange={stream => setParams({ stream })}
              />
              {filtered.length > 0 && (
                <Button
                  look="text"
                  onClick={() =>
                    setParams({
                      step: '',
                      device: '',
                      stream: '',
                      operator: '',
                      family: '',
                      origin: '',
                      cores: '',
                    })
                  }
                >
                  Clear {params.operator ? 'the operator and other filters' : 'filters'}
                </Button>
              )}
            </>
          }
          tools={
            <Select
              label="Pies"
              value={params.top ?? '5'}
              options={PIE_LIMITS}
              onChange={next => setParams({ top: next })}
            />
          }
          empty={filtered.length > 0 ? 'No kernel matches these filters.' : 'No kernels were recorded.'}
          foot={shown =>
            shown.length === payload.rows.length
              ? total(payload.total_ns, payload.calls)
              : total(
                  sum(shown, row => row.total_ns),
                  sum(shown, row => row.calls),
                )
          }
        />
        {chosen && <KernelDetail key={keyOf(chosen)} row={chosen} onClose={close} />}
      </div>
      {payload.memory_operations.length > 0 && (
        <MemoryOperations
          rows={payload.memory_operations}
          onOpen={(row: MemoryOperationRow) =>
            select({ view: 'trace', params: { event: String(row.event) } })
          }
        />
      )}
    </div>
  );
}

/** Height of a table's tools, head and foot, px. */
const TABLE_FRAME = 108;

const total = (ns: number, calls: number): string =>
  `sum: ${formatDuration(ns)} in ${plural(calls, 'launch', 'launches')}`;

function columnsOf(payload: KernelsPayload, show: (row: KernelRow) => void): Column<KernelRow>[] {
  const { reasons } = payload;
  const byLaunch = payload.group_by === 'launch';
  const byFamily = payload.group_by === 'family';
  const columns: (Column<KernelRow> | false)[] = [
    {
      id: 'name',
      title: byFamily ? 'Family' : 'Kernel',
      kind: 'text',
      value: row => row.name,
      shownName: row => row.short_name,
      width: 260,
      render: row => <NameCell name={row.name} short={row.short_name} onShow={() => show(row)} />,
    },
    !byFamily && {
      id: 'short_name',
      title: 'Short name',
      kind: 'text',
      value: row => row.short_name,
      hidden: true,
    },
    !byFamily && {
      id: 'family',
      title: 'Family',
      kind: 'text',
      term: 'family',
      value: row => row.family,
      width: 128,
      grow: false,
    },
    !reasons.origin && {
      id: 'origin',
      title: 'Origin',
      kind: 'text',
      value: originText,
      reason: row => `${row.origin_reason ?? 'Unknown'}.`,
      width: 200,
    },
    byLaunch && {
      id: 'operator',
      title: 'Operator',
      kind: 'text',
      value: row => row.operator,
      reason: 'Not launched by a recorded operator.',
      width: 170,
    },
    byLaunch && { id: 'grid', title: 'Grid', kind: 'code', value: row => row.grid, width: 110 },
    byLaunch && { id: 'block', title: 'Block', kind: 'code', value: row => row.block, width: 100 },
    byLaunch && {
      id: 'registers',
      title: 'Registers',
      kind: 'count',
      value: row => row.registers,
      width: 84,
    },
    byLaunch && { id: 'shared_memory', title: 'Shared', kind: 'bytes', value: row => row.shared_memory },
    { id: 'calls', title: 'Calls', kind: 'count', value: row => row.calls },
    {
      id: 'total_ns',
      title: 'Total',
      kind: 'duration',
      value: row => row.total_ns,
      bar: { of: payload.total_ns, color: 'var(--c-kernel)', percent: true },
    },
    { id: 'mean_ns', title: 'Mean', kind: 'duration', value: row => row.mean_ns },
    { id: 'median_ns', title: 'Median', kind: 'duration', value: row => row.median_ns },
    { id: 'p95_ns', title: 'p95', kind: 'duration', value: row => row.p95_ns },
    { id: 'max_ns', title: 'Max', kind: 'duration', value: row => row.max_ns },
    { id: 'min_ns', title: 'Min', kind: 'duration', value: row => row.min_ns, hidden: true },
    !reasons.mean_blocks_per_sm && {
      id: 'mean_blocks_per_sm',
      title: 'Blocks/SM',
      kind: 'number',
      term: 'blocks_per_sm',
      value: row => row.mean_blocks_per_sm,
      width: 104,
    },
    !reasons.mean_occupancy && {
      id: 'mean_occupancy',
      title: 'Occupancy',
      kind: 'ratio',
      term: 'occupancy',
      value: row => row.mean_occupancy,
      width: 108,
    },
    !reasons.tc_used && {
      id: 'tc_used',
      title: 'TC',
      kind: 'flag',
      term: 'tensor_core_ratio',
      value: row => row.tc_used,
      reason: row => `${row.tc_reason}.`,
    },
    !reasons.limiter && {
      id: 'limiter',
      title: 'Limited by',
      kind: 'text',
      term: 'limiter',
      value: row => row.limiter,
      reason: 'Its launches have different limiters, or the trace lacks the data.',
      width: 124,
      grow: false,
      hidden: !byLaunch,
    },
    ...(reasons.speed
      ? []
      : speedColumns<KernelRow>(row => row.speed, { hidden: ['flops_per_s', 'bytes_per_s', 'bound'] })),
  ];
  return columns.filter(column => column !== false);
}
