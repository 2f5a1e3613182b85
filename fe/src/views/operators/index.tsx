import { sum } from 'd3-array';
import { useMemo } from 'react';
import type { OperatorRow, OperatorsPayload } from '../../api/types';
import { formatDuration, plural } from '../../base/format';
import { useSelection } from '../../state/selection';
import { useTableState } from '../../state/table';
import { Button } from '../../widgets/inputs/Button';
import { Answer } from '../../widgets/Answer';
import { Sentence } from '../../widgets/Sentence';
import { SavePicture } from '../../widgets/charts/SavePicture';
import { Donut, type Share } from '../../widgets/charts/Donut';
import { Select } from '../../widgets/inputs/Select';
import { Term } from '../../widgets/Term';
import type { Column } from '../../widgets/table/columns';
import { DataTable } from '../../widgets/table/DataTable';
import { OperatorDetail } from './OperatorDetail';
import { ReplayedOperators } from './ReplayedOperators';
import { hasDevice, operatorKey, totalsText } from './select';
import { StepFilter, withAll } from '../_shared/filters';
import { useSelectableRows } from '../_shared/rows/useSelectableRows';
import { speedColumns } from '../_shared/speed';
import splitCss from '../../widgets/table/Split.module.css';

const GROUPS = [
  ['name', 'operator'],
  ['shape', 'operator + input shapes'],
  ['signature', 'operator + shapes, dtypes, strides'],
  ['module', 'operator + module'],
  ['annotation', 'operator + annotation'],
] as const;

const TOPS = [
  ['5', 'top 5'],
  ['10', 'top 10'],
  ['20', 'top 20'],
  ['0', 'hidden'],
] as const;

export default function OperatorsView({ payload, crumb }: { payload: OperatorsPayload; crumb: string }) {
  const { selection } = useSelection();
  const { params } = selection;
  const device = hasDevice(payload);
  const table = useTableState({ id: device ? 'device_self_ns' : 'host_self_ns', descending: true });
  const columns = useMemo(() => columnsOf(payload), [payload]);
  const pies = useMemo(() => piesOf(payload), [payload]);
  const { setParams, pick, chosen, close, table: rows } = useSelectableRows(payload.rows, operatorKey);
  const top = Number(params.top ?? '5');
  const filtered = ['step', 'thread', 'phase', 'kernel', 'family'].filter(name => params[name]);
  const filters = (
    <>
      <StepFilter steps={payload.steps} value={params.step} onChange={step => setParams({ step })} />
      {payload.threads.length > 1 && (
        <Select
          label="Thread"
          value={params.thread ?? ''}
          options={withAll(payload.threads)}
          onChange={thread => setParams({ thread })}
        />
      )}
      <Select
        label="Phase"
        value={params.phase ?? ''}
        options={withAll(payload.phases)}
        onChange={phase => setParams({ phase })}
      />
      {payload.families.length > 1 && (
        <Select
          label="Family"
          value={params.family ?? ''}
          options={withAll(payload.families)}
          onChange={family => setParams({ family })}
        />
      )}
      {filtered.length > 0 && (
        <Button
          look="text"
          onClick={() => setParams({ step: '', thread: '', phase: '', kernel: '', family: '' })}
        >
          Clear {params.kernel ? 'the kernel and other filters' : 'filters'}
        </Button>
      )}
    </>
  );
  const replayedOnly = payload.rows.length === 0 && payload.replayed.length > 0;
  return (
    <div className={`${splitCss.view} fill`}>
      <Answer crumb={crumb} why={totalsText(payload)}>
        <Sentence text={payload.headline} />
      </Answer>
      {top > 0 && payload.rows.length > 0 && (
        <div className={`panel ${splitCss.pies}`}>
          {pies.map(pie => (
            <Donut
              key={pie.title}
              {...pie}
              top={top}
              format={formatDuration}
              onPick={pick}
              selectedKey={params.select}
            />
          ))}
          <div className={splitCss.save}>
            <SavePicture name="operator_shares" />
          </div>
        </div>
      )}
      {!replayedOnly && (
        <div className={`${splitCss.split} ${chosen ? splitCss.withDetail : ''}`}>
          <DataTable
            name="operators"
            {...rows}
            columns={columns}
            {...table}
            placeholder={`Filter ${plural(payload.rows.length, 'operator')}`}
            noun={payload.group_by === 'name' ? 'operator' : 'row'}
            before={
              <>
                <Select
                  label="Rows"
                  value={payload.group_by}
                  options={GROUPS}
                  onChange={group_by => setParams({ group_by, select: '' })}
                />
                {filters}
              </>
            }
            tools={
              <Select
                label="Pies"
                value={params.top ?? '5'}
                options={TOPS}
                onChange={next => setParams({ top: next })}
              />
            }
            empty={filtered.length > 0 ? 'No operator matches these filters.' : 'No operators were recorded.'}
            foot={shown => totalsOf(shown, payload)}
          />
          {chosen && (
            <OperatorDetail key={operatorKey(chosen)} row={chosen} payload={payload} onClose={close} />
          )}
        </div>
      )}
      {payload.replayed.length > 0 && (
        <ReplayedOperators rows={payload.replayed} before={replayedOnly && filters} />
      )}
    </div>
  );
}

/** Total times of all operators, or of those that match the search. */
function totalsOf(rows: OperatorRow[], { rows: all, totals, unlinked }: OperatorsPayload) {
  const isAll = rows.length === all.length;
  const device = isAll ? totals.device_self_ns : sum(rows, row => row.device_self_ns ?? 0);
  const host = isAll ? totals.host_self_ns : sum(rows, row => row.host_self_ns);
  return (
    <>
      {isAll && unlinked && unlinked.calls > 0 && (
        <span>
          not linked <Term id="unlinked" /> {formatDuration(unlinked.device_ns)} in{' '}
          {plural(unlinked.calls, 'device event')} ·{' '}
        </span>
      )}
      sum: {totals.device_self_ns !== null && `${formatDuration(device)} device self, `}
      {formatDuration(host)} host self
    </>
  );
}

interface Pie {
  title: string;
  color: string;
  shares: Share[];
}

/** Pie charts of self times; total times of nested operators overlap and don’t add up. */
function piesOf(payload: OperatorsPayload): Pie[] {
  const sharesOf = (value: (row: OperatorRow) => number | null) =>
    payload.rows.map(row => ({
      key: operatorKey(row),
      title: row.name.replace(/^aten::/, ''),
      value: value(row) ?? 0,
    }));
  const host = { title: 'Host self', color: 'var(--c-cpu_exec)', shares: sharesOf(row => row.host_self_ns) };
  const device = {
    title: 'Device self',
    color: 'var(--c-kernel)',
    shares: sharesOf(row => row.device_self_ns),
  };
  return hasDevice(payload) ? [device, host] : [host];
}

function columnsOf(payload: OperatorsPayload): Column<OperatorRow>[] {
  const { reasons, totals } = payload;
  const device = hasDevice(payload);
  const columns: (Column<OperatorRow> | false)[] = [
    { id: 'name', title: 'Operator', kind: 'text', value: row => row.name },
    (payload.group_by === 'shape' || payload.group_by === 'signature') && {
      id: 'input_shape',
      title: 'Input shapes',
      kind: 'code',
      value: row => row.input_shape,
      reason: reasons.input_shape ?? 'No shapes were recorded for this call.',
    },
    payload.group_by === 'signature' && {
      id: 'input_types',
      title: 'Types',
      kind: 'code',
      value: row => row.input_types,
      width: 160,
    },
    payload.group_by === 'signature' && {
      id: 'input_strides',
      title: 'Strides',
      kind: 'code',
      value: row => row.input_strides,
      width: 160,
      hidden: true,
    },
    payload.group_by === 'module' && {
      id: 'module',
      title: 'Module',
      kind: 'text',
      value: row => row.module,
      reason: reasons.module ?? 'Outside any module.',
    },
    payload.group_by === 'annotation' && {
      id: 'annotation',
      title: 'Annotation',
      kind: 'text',
      value: row => row.annotation,
      reason: 'Outside any annotation.',
    },
    { id: 'calls', title: 'Calls', kind: 'count', value: row => row.calls },
    device && {
      id: 'device_self_ns',
      title: 'Device self',
      kind: 'duration',
      term: 'device_self',
      value: row => row.device_self_ns,
      bar: { of: totals.device_self_ns ?? 0, color: 'var(--c-kernel)', percent: true },
    },
    device && {
      id: 'device_total_ns',
      title: 'Device total',
      kind: 'duration',
      term: 'device_total',
      value: row => row.device_total_ns,
    },
    {
      id: 'host_self_ns',
      title: 'Host self',
      kind: 'duration',
      term: 'host_self',
      value: row => row.host_self_ns,
      bar: { of: totals.host_self_ns, color: 'var(--c-cpu_exec)', percent: !device },
    },
    {
      id: 'host_total_ns',
      title: 'Host total',
      kind: 'duration',
      term: 'host_total',
      value: row => row.host_total_ns,
    },
    {
      id: 'host_mean_ns',
      title: 'Host mean',
      kind: 'duration',
      value: row => row.host_mean_ns,
      hidden: device,
    },
    device && {
      id: 'tc_eligible',
      title: 'TC eligible',
      kind: 'flag',
      value: row => row.tc_eligible,
      hidden: true,
      width: 84,
    },
    device && {
      id: 'tc_self_ratio',
      title: 'TC',
      kind: 'ratio',
      term: 'tc_eligible',
      value: row => row.tc_self_ratio,
      reason: reasons.tc_self_ratio,
    },
    device && {
      id: 'tc_self_unknown',
      title: 'TC unknown',
      kind: 'ratio',
      term: 'tc_eligible',
      value: row => row.tc_self_unknown,
      reason: 'No device time.',
      hidden: true,
    },
    device && {
      id: 'tc_total_ratio',
      title: 'TC total',
      kind: 'ratio',
      value: row => row.tc_total_ratio,
      reason: reasons.tc_total_ratio,
      hidden: true,
      width: 84,
    },
    ...(reasons.speed
      ? []
      : speedColumns<OperatorRow>(row => row.speed, { hidden: ['flops_per_s', 'bytes_per_s'] })),
  ];
  return columns.filter(column => column !== false);
}
