import { useMemo } from 'react';
import type { RooflinePayload } from '../../api/types';
import { formatDuration, formatLimit, formatNumber, formatRatio, plural } from '../../base/format';
import { useSelection } from '../../state/selection';
import { useTableState } from '../../state/table';
import { Answer } from '../../widgets/Answer';
import { Meter } from '../../widgets/charts/Meter';
import { Button } from '../../widgets/inputs/Button';
import { Select } from '../../widgets/inputs/Select';
import { Panel } from '../../widgets/Panel';
import { SavePicture } from '../../widgets/charts/SavePicture';
import { Sentence } from '../../widgets/Sentence';
import { DataTable } from '../../widgets/table/DataTable';
import splitCss from '../../widgets/table/Split.module.css';
import { Term } from '../../widgets/Term';
import { useStepWords, type Say } from '../../state/steps';
import { RooflineChart } from './RooflineChart';
import { columnsOf } from './columns';
import { HardwareCounters } from './HardwareCounters';
import { RooflineDetail } from './RooflineDetail';
import css from './index.module.css';
import { Peaks } from './Peaks';
import { useCachedPeaks } from './useCachedPeaks';
import { StepFilter } from '../_shared/filters';
import { useSelectableRows } from '../_shared/rows/useSelectableRows';
import { BOUND_COLORS, type Bound } from '../_shared/speed';
import { rooflineKey } from './select';

const GROUPS = [
  ['operator', 'operator'],
  ['shape', 'operator + input shapes'],
  ['kernel', 'kernel'],
  ['family', 'kernel family'],
  ['module', 'module'],
] as const;

const BOUNDS: Bound[] = ['compute', 'memory', 'latency', 'launch', 'communication', 'unknown'];

export default function RooflineView({ payload, crumb }: { payload: RooflinePayload; crumb: string }) {
  const { selection } = useSelection();
  const { params } = selection;
  const table = useTableState({ id: 'device_ns', descending: true });
  const say = useStepWords();
  const columns = useMemo(() => columnsOf(payload), [payload]);
  const { setParams, pick, chosen, close, table: rows } = useSelectableRows(payload.rows, rooflineKey);
  const device = payload.devices[0];
  const given = params.peaks ?? '';
  const give = useCachedPeaks(device, given, peaks => setParams({ peaks }));
  const filtered = ['step', 'device'].some(name => params[name]);
  const { counters } = payload;
  if (counters && payload.device_ns === 0 && !filtered) {
    return (
      <div className={`${splitCss.view} fill`}>
        <Answer crumb={crumb} why={<Sentence text={payload.reasons.mfu ?? []} />}>
          <Sentence text={payload.headline} />
        </Answer>
        <HardwareCounters counters={counters} />
      </div>
    );
  }
  return (
    <div className={`${splitCss.view} fill`}>
      <Answer crumb={crumb} why={why(payload, say)}>
        <Sentence text={payload.headline} />
      </Answer>
      <Modeled payload={payload} />
      <div className={css.pictures}>
        <Panel
          title={
            <>
              Roofline <Term id="roofline" />
            </>
          }
          note="a point is a row, sized by device time"
          actions={<SavePicture name={`roofline_by_${payload.group_by}`} />}
        >
          <p className={css.legend}>
            {BOUNDS.filter(bound => payload.rows.some(row => row.bound === bound)).map(bound => (
              <span key={bound}>
                <i style={{ background: BOUND_COLORS[bound] }} /> {bound}
              </span>
            ))}
          </p>
          <RooflineChart
            payload={payload}
            selected={params.select}
            onSelect={row => pick(rooflineKey(row))}
          />
        </Panel>
        {device && (
          <Panel title={given === '' ? 'Device' : 'Device (edited)'}>
            <Peaks key={given} device={device} note={payload.note} given={given} onGive={give} />
          </Panel>
        )}
      </div>
      <div className={`${splitCss.split} ${chosen ? splitCss.withDetail : ''}`}>
        <DataTable
          name="roofline rows"
          {...rows}
          columns={columns}
          {...table}
          placeholder={`Filter ${plural(payload.rows.length, 'row')}`}
          noun="row"
          before={
            <>
              <Select
                label="Rows"
                value={payload.group_by as (typeof GROUPS)[number][0]}
                options={GROUPS}
                onChange={group_by => setParams({ group_by, select: '' })}
              />
              <StepFilter steps={payload.steps} value={params.step} onChange={step => setParams({ step })} />
              {filtered && (
                <Button look="text" onClick={() => setParams({ step: '', device: '' })}>
                  Clear filters
                </Button>
              )}
            </>
          }
          empty={filtered ? 'No work matches these filters.' : 'No operator launched device work.'}
          foot={foot(payload)}
        />
        {chosen && (
          <RooflineDetail key={rooflineKey(chosen)} row={chosen} peaks={payload.devices} onClose={close} />
        )}
      </div>
      {counters && <HardwareCounters counters={counters} />}
    </div>
  );
}

/** How much of the device time is explained. */
function Modeled({ payload }: { payload: RooflinePayload }) {
  const rest = payload.device_ns - payload.modeled_ns;
  return (
    <section className={`panel ${css.modeled}`} data-part="coverage">
      <span>
        Modeled <Term id="coverage" />
      </span>
      <Meter ratio={payload.coverage ?? 0} color="var(--c-kernel)" />
      <span>
        {formatDuration(payload.modeled_ns)} of {formatDuration(payload.device_ns)} device time (
        {formatRatio(payload.coverage)})
        {rest > 0 && payload.unlinked_ns > 0
          ? `; ${formatDuration(payload.unlinked_ns)} wasn’t launched by a recorded operator`
          : ''}
      </span>
    </section>
  );
}

function why(payload: RooflinePayload, say: Say): string {
  const parts = [
    `MFU ${payload.mfu === null ? 'unknown' : formatRatio(payload.mfu)}`,
    `HFU ${payload.hfu === null ? 'unknown' : formatRatio(payload.hfu)}`,
    `${formatNumber(payload.executed_flops / 1e9)} GFLOP in matrix operators` +
      (payload.recomputed_flops > 0
        ? `, ${formatNumber(payload.recomputed_flops / 1e9)} of them recomputed`
        : ''),
    `${formatDuration(payload.step_ns)} of ${say('steps')}`,
  ];
  if (payload.tokens) {
    const { per_second, iterations } = payload.tokens;
    parts.push(`${formatNumber(per_second)} tokens/s in ${plural(iterations, 'iteration')}`);
  }
  return parts.join(' · ');
}

function foot(payload: RooflinePayload): string {
  const saved = payload.rows.reduce((sum, row) => sum + (row.saved_ns ?? 0), 0);
  const left = payload.others
    ? `${plural(payload.others.rows, 'row')} with ${formatDuration(payload.others.device_ns)} left out · `
    : '';
  return `${left}at most ${formatLimit(saved)} saved if every row with a roofline reached it`;
}
