import { useMemo, useRef } from 'react';
import type { DiffLevel, DiffPart, DiffPayload, Selectors } from '../../api/types';
import { plural } from '../../base/format';
import { useView } from '../../state/queries';
import { useSelection } from '../../state/selection';
import { Button } from '../../widgets/inputs/Button';
import { Checkbox } from '../../widgets/inputs/Checkbox';
import { Answer } from '../../widgets/Answer';
import { Choice } from '../../widgets/inputs/Choice';
import { HowWeKnow } from '../../widgets/HowWeKnow';
import { Panel } from '../../widgets/Panel';
import { Sentence } from '../../widgets/Sentence';
import { Term } from '../../widgets/Term';
import { SavePicture } from '../../widgets/charts/SavePicture';
import { PartBars } from './PartBars';
import {
  barTableParams,
  familyRows,
  kernelRows,
  METRICS,
  operatorRows,
  isOnlyInBase,
  partRows,
  type Metric,
  type DiffRow,
  type TimeOf,
} from './select';
import { Sides } from './Sides';
import { DiffTable } from './Table';
import { Waterfall } from './Waterfall';
import { TotalsTable } from './Totals';
import css from './index.module.css';
import partsCss from './PartBars.module.css';

const TABLES = [
  ['operators', 'Operators'],
  ['parts', 'Parts'],
  ['kernels', 'Kernels'],
  ['families', 'Families'],
] as const;

const TIMES = [
  ['host', 'Host time'],
  ['device', 'Device time'],
] as const;

/** Parameters that select the sides; links within the page keep them. */
const SIDE_PARAMS = ['base_run', 'base_worker', 'base_span', 'also', 'base_also', 'min_effect'];

const BY = { category: 'By category', phase: 'By phase' } as const;

/** Swap the further recordings, too. */
function swapFurther({ also, base_also, ...params }: Record<string, string>): Record<string, string> {
  return { ...params, ...(base_also && { also: base_also }), ...(also && { base_also: also }) };
}

interface Props {
  payload: DiffPayload;
  crumb: string;
  run: string;
  worker: string;
  span: string;
  base: Required<Selectors> | null;
}

export default function DiffView({ payload, crumb, run, worker, span, base }: Props) {
  const { selection, select } = useSelection();
  const { params } = selection;
  const setParams = (change: Record<string, string>) =>
    select({
      params: Object.fromEntries(
        Object.entries({ ...params, ...change }).filter(([, value]) => value !== ''),
      ),
    });
  const selectors = useMemo(() => ({ run, worker, span }), [run, worker, span]);
  const compared = useMemo(
    () => ({
      ...(base && { base_run: base.run, base_worker: base.worker, base_span: base.span }),
      ...(params.also && { also: params.also }),
      ...(params.base_also && { base_also: params.base_also }),
      ...(params.min_effect && { min_effect: params.min_effect }),
    }),
    [base, params.also, params.base_also, params.min_effect],
  );
  const path = params.part ?? '';
  const opened = useView<DiffLevel>('diff/part', selectors, { ...compared, path }, path !== '');
  const level =
    path === '' ? payload.level : opened.data?.state === 'ready' ? opened.data.payload : undefined;
  const time: TimeOf = params.time === 'device' ? 'device' : 'host';
  const metric: Metric = METRICS.find(([name]) => name === params.metric)?.[0] ?? 'host_self';
  const table = TABLES.find(([name]) => name === params.table)?.[0] ?? 'operators';
  const waterfall = payload.waterfalls.find(each => each.by === params.by) ?? payload.waterfalls[0];
  const only = params.only === '1';
  const hasDevice = payload.kernels.length > 0;
  const noun = payload.step_noun;
  const rows = useMemo(
    () =>
      table === 'kernels'
        ? kernelRows(payload.kernels)
        : table === 'families'
          ? familyRows(payload.families)
          : table === 'parts'
            ? partRows(level?.parts ?? [], time)
            : operatorRows(level?.operators ?? [], metric),
    [table, payload, level, metric, time],
  );
  const open = (part: string) => setParams({ part });
  const onOpen = (row: DiffRow) => {
    const where = isOnlyInBase(row) && base ? base : {};
    const event = row.events?.candidate ?? (base && row.events?.base) ?? null;
    if (row.path !== undefined && (row.parts ?? 0) > 0) {
      open(row.path);
    } else if (event !== null) {
      const there = row.events?.candidate === null && base ? base : {};
      select({ view: 'trace', ...there, params: { event: String(event) } });
    } else if (table === 'operators') {
      select({ view: 'operators', ...where, params: { select: row.renamed ?? row.name } });
    } else if (table === 'families') {
      select({ view: 'kernels', ...where, params: { family: row.name } });
    } else if (table === 'kernels') {
      select({ view: 'kernels', ...where, params: { select: row.renamed ?? row.name } });
    }
  };
  const onPart = (part: DiffPart) => onOpen(partRows([part], time)[0]!);
  const below = useRef<HTMLDivElement>(null);
  const barParams = (name: string) => ({ sort: '', q: '', time: '', ...barTableParams(name, hasDevice) });
  const isShown = (name: string) =>
    Object.entries(barParams(name)).every(([key, value]) => (params[key] ?? '') === value);
  /** A bar opens the rows that make it up. */
  const onBar = (name: string) => {
    setParams(barParams(name));
    below.current?.scrollIntoView({ block: 'nearest' });
  };
  const against = base ? [base.run, base.worker, `span ${base.span}`].join(' · ') : '';
  const sides = against && `base ${against}`;
  const fileSuffix = against && `_from_${against}`;
  const before = (
    <>
      <Choice
        name="Table"
        value={table}
        options={hasDevice ? TABLES : TABLES.slice(0, 2)}
        onPick={next => setParams({ table: next === 'operators' ? '' : next, sort: '', q: '' })}
      />
      {table === 'operators' && (
        <Choice
          name="Time of the operators"
          value={metric}
          options={hasDevice ? METRICS : METRICS.slice(0, 2)}
          onPick={next => setParams({ metric: next === 'host_self' ? '' : next })}
        />
      )}
      <Checkbox
        label="Only significant changes"
        checked={only}
        onChange={checked => setParams({ only: checked ? '1' : '' })}
      />
    </>
  );
  return (
    <div className={css.view} data-part="diff-view">
      <Answer
        crumb={`${crumb} vs. ${against}`}
        why={payload.explanation.map((sentence, i) => (
          <span key={i}>
            <Sentence text={sentence} keepParams={SIDE_PARAMS} />{' '}
          </span>
        ))}
      >
        <Sentence text={payload.headline} keepParams={SIDE_PARAMS} />
      </Answer>
      {base && (
        <Sides
          base={base}
          candidate={selectors}
          further={{ base_also: params.base_also ?? '', also: params.also ?? '' }}
          onFurther={change => setParams({ ...change, part: '' })}
          onBase={next =>
            setParams({
              base_run: next.run ?? '',
              base_worker: next.worker ?? '',
              base_span: next.span ?? '',
              base_also: '',
              part: '',
            })
          }
          onSwap={() =>
            select({
              ...base,
              params: swapFurther({ ...params, base_run: run, base_worker: worker, base_span: span }),
            })
          }
          minEffect={params.min_effect ?? String(payload.min_effect)}
          onMinEffect={min_effect => setParams({ min_effect })}
        />
      )}
      <div className={css.top}>
        {waterfall && (
          <Panel
            title={
              <>
                Where the change comes from <Term id="waterfall" />
              </>
            }
            note={`means of ${plural(payload.base.steps.length, noun)} (base) and ${plural(payload.candidate.steps.length, noun)} (candidate)`}
            actions={
              <>
                <Choice
                  name={`Parts of the ${noun}`}
                  value={waterfall.by}
                  options={payload.waterfalls.map(each => [each.by, BY[each.by]] as const)}
                  onPick={by => setParams({ by })}
                />
                <SavePicture name={`difference_by_${waterfall.by}${fileSuffix}`} />
              </>
            }
          >
            <Waterfall
              waterfall={waterfall}
              compared={sides}
              isShown={isShown}
              onBar={onBar}
              onSide={side => select({ view: 'overview', ...(side === 'base' && base), params: {} })}
            />
          </Panel>
        )}
        <Panel title="Totals">
          {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- keyboard users must reach what scrolls */}
          <div className={css.totalsScroll} tabIndex={0} role="group" aria-label="Totals">
            <TotalsTable payload={payload} />
          </div>
        </Panel>
      </div>
      <Panel
        title={
          <nav className={css.crumbs} data-part="breadcrumbs" aria-label="Open part">
            {level?.crumbs
              .filter(each => each.path !== level.path)
              .map(crumbPart => (
                <Button key={crumbPart.path} look="text" onClick={() => open(crumbPart.path)}>
                  {crumbPart.path === '' ? `The ${noun}` : crumbPart.name} ›
                </Button>
              ))}
            <span>{level ? (level.path === '' ? `The ${noun}` : level.part.name) : 'Loading'}</span>
          </nav>
        }
        note={level && `${plural(level.parts.length, 'part')} in order of time; click one to open it`}
        actions={
          <>
            <span className={css.legend}>
              <i className={`${partsCss.side} ${partsCss.base}`} /> base{' '}
              <i className={`${partsCss.side} ${partsCss.candidate}`} /> candidate
            </span>
            {hasDevice && (
              <Choice
                name="Time of the parts"
                value={time}
                options={TIMES}
                onPick={next => setParams({ time: next === 'host' ? '' : next })}
              />
            )}
            {level && level.parts.length > 0 && (
              <SavePicture name={`parts_of_${level.part.name || 'the_step'}_${time}${fileSuffix}`} />
            )}
          </>
        }
      >
        {level && level.parts.length > 0 ? (
          <PartBars level={level} time={time} compared={sides} onOpen={onPart} />
        ) : (
          <p className={`dim ${css.none}`}>
            {opened.error?.message ?? (level ? 'This part has no smaller parts.' : 'Loading parts')}
          </p>
        )}
      </Panel>
      <div ref={below} className={css.table} data-part="diff-table">
        <DiffTable
          name={table}
          title={{ operators: 'Operator', parts: 'Part', kernels: 'Kernel', families: 'Family' }[table]}
          rows={rows}
          before={before}
          only={only}
          empty={
            level || table === 'kernels' || table === 'families'
              ? `Neither side has any ${table === 'families' ? 'kernel families' : table} here. Choose a larger part or another table.`
              : (opened.error?.message ?? 'Loading parts')
          }
          onOpen={onOpen}
        />
      </div>
      {payload.notes.length > 0 && (
        <HowWeKnow
          confidence={`${plural(payload.base.steps.length, noun)} vs. ${payload.candidate.steps.length}`}
        >
          {payload.notes.map((note, i) => (
            <p key={i}>
              <Sentence text={note} keepParams={SIDE_PARAMS} />
            </p>
          ))}
        </HowWeKnow>
      )}
    </div>
  );
}
