import { useCallback, useMemo } from 'react';
import type { Distributed } from '../../api/types';
import { formatCount, formatDuration, plural } from '../../base/format';
import { writeRanks } from '../../state/ranks';
import { useSelection } from '../../state/selection';
import { Answer } from '../../widgets/Answer';
import { Choice } from '../../widgets/inputs/Choice';
import { HeatMap } from '../../widgets/charts/HeatMap';
import { Icon } from '../../widgets/Icon';
import { Panel } from '../../widgets/Panel';
import { Select } from '../../widgets/inputs/Select';
import { Term } from '../../widgets/Term';
import { InstanceDetail } from './Instance';
import { PARTS, RankBars } from './RankBars';
import { backends, greatest, grid, groupLabel, rankName, reading, sentences, someRanks } from './select';
import { Stragglers } from './Stragglers';
import { ByGroup } from './tables/ByGroup';
import { ByWorker } from './tables/ByWorker';
import { Instances } from './tables/Instances';
import { Ranks } from './tables/Ranks';
import css from './index.module.css';
import splitCss from '../../widgets/table/Split.module.css';
import rankBarsCss from './RankBars.module.css';

const TABLES = [
  ['worker', 'By rank'],
  ['group', 'By process group'],
  ['every', 'Every collective'],
  ['ranks', 'Ranks and clocks'],
] as const;

const PROBLEMS = 6;
/** Lateness below this share of the longest part of a step is noise, and drawn pale. */
const NOTABLE = 0.05;

export default function DistributedView({ payload, crumb }: { payload: Distributed; crumb: string }) {
  const { selection, select } = useSelection();
  const { params, run, span } = selection;
  const selectors = useMemo(() => ({ run, span }), [run, span]);
  const put = useCallback(
    (change: Record<string, string>) =>
      select({
        params: Object.fromEntries(
          Object.entries({ ...params, ...change }).filter(([, value]) => value !== ''),
        ),
      }),
    [params, select],
  );
  const onWorker = useCallback((worker: string) => select({ view: 'overview', worker }), [select]);
  const onMerged = (workers: string[], more: Record<string, string> = {}) =>
    select({ view: 'trace', params: { ...more, ranks: writeRanks(workers) } });
  const onPick = useCallback((id: number) => put({ collective: String(id) }), [put]);
  const read = reading(payload);
  const said =
    read.coming > 0 && payload.verdict.kind === 'unknown'
      ? { answer: 'Reading the ranks.', why: 'Who waits for whom shows once two of them are here.' }
      : sentences(payload.verdict.text);
  const jobCrumb = [crumb.split(' · ')[0], plural(payload.ranks.length, 'worker'), backends(payload)]
    .filter(Boolean)
    .join(' · ');
  const maps = useMemo(() => {
    const computation = grid(payload, row => row.computation_ns + row.overlap_ns);
    const communication = grid(payload, row => row.communication_ns);
    const other = grid(payload, row => row.other_ns);
    return { computation, communication, other, most: greatest(computation, communication, other) };
  }, [payload]);
  const late = payload.heat_map;
  const ranks = useMemo(() => new Map(payload.ranks.map(row => [row.worker, row.rank])), [payload]);
  const rowsOfVerdict = (workers: readonly string[]) =>
    new Set(workers.flatMap((worker, i) => (worker === payload.verdict.worker ? [i] : [])));
  const marked = rowsOfVerdict(payload.averages.map(row => row.worker));
  const places = useMemo(
    () =>
      new Map(
        payload.nodes.flatMap(node =>
          node.processes.map(process => [
            process.worker,
            [
              process.devices
                .map(device => `${device.kind === 'CUDA' ? 'GPU' : device.kind} ${device.id}`)
                .join(', '),
              `process ${process.name}`,
            ]
              .filter(Boolean)
              .join(' · '),
          ]),
        ),
      ),
    [payload],
  );
  const table = TABLES.find(([name]) => name === params.table)?.[0] ?? 'worker';
  const chosen =
    table === 'every' && /^\d+$/.test(params.collective ?? '') ? Number(params.collective) : null;
  const before = (
    <>
      <Choice
        name="Table"
        value={table}
        options={TABLES}
        onPick={next =>
          put({
            table: next === 'worker' ? '' : next,
            sort: '',
            q: '',
            collective: '',
            late: '',
            group: '',
            step: '',
          })
        }
      />
      {table === 'every' && (
        <>
          {payload.groups.length > 1 && (
            <Select
              label="Group"
              value={params.group ?? ''}
              options={[
                ['', 'all'],
                ...payload.groups.map(group => [String(group.id), groupLabel(group)] as const),
              ]}
              onChange={group => put({ group })}
            />
          )}
          <Select
            label="Step"
            value={params.step ?? ''}
            options={[['', 'all'], ...maps.computation.steps.map(step => [step, step] as const)]}
            onChange={step => put({ step })}
          />
          {params.late && (
            <button
              type="button"
              className="chip"
              data-part="chip"
              title="Show all"
              onClick={() => put({ late: '' })}
            >
              last: {rankName(ranks.get(params.late) ?? null, params.late)} <Icon name="close" size={12} />
            </button>
          )}
        </>
      )}
    </>
  );
  const filter = Object.fromEntries(
    ['group', 'step', 'late'].filter(name => params[name]).map(name => [name, params[name]!]),
  );
  const lateValues = late?.late_ns.map(row => row.map(value => (value === null ? null : Math.max(value, 0))));
  return (
    <div className={css.view}>
      <Answer crumb={jobCrumb} why={<Spoken text={said.why} />}>
        <Spoken text={said.answer} />
      </Answer>
      {read.coming > 0 && (
        <p className={css.progress} role="status">
          <progress value={read.ready + read.failed} max={read.all} /> {formatCount(read.ready)} of{' '}
          {formatCount(read.all)} ranks are read; the figures grow with each.
        </p>
      )}
      <Problems payload={payload} />
      <div className={css.maps}>
        {late && lateValues && (
          <Panel
            title={
              <>
                Late <Term id="late" />
              </>
            }
            note="after the median rank, per step"
          >
            <HeatMap
              title="How late each rank arrives, per step"
              rows={late.workers.map(worker => rankName(ranks.get(worker) ?? null, worker))}
              columns={late.steps}
              values={lateValues}
              most={Math.max(greatest({ rows: [], steps: [], values: lateValues }), NOTABLE * maps.most)}
              color="--c-late"
              format={formatDuration}
              marked={rowsOfVerdict(late.workers)}
              onPick={(row, column) =>
                put({ table: 'every', late: late.workers[row]!, step: late.steps[column]!, sort: '-skew' })
              }
            />
          </Panel>
        )}
        {(
          [
            ['computation', 'Computation', '--c-kernel', 'computation'],
            ['communication', 'Exposed communication', '--c-communication', 'exposed'],
            ['other', 'Neither', '--c-other', 'neither'],
          ] as const
        ).map(([name, title, color, term]) => (
          <Panel
            key={name}
            title={
              <>
                {title} <Term id={term} />
              </>
            }
          >
            <HeatMap
              title={`${title} by rank and step`}
              rows={maps[name].rows}
              columns={maps[name].steps}
              values={maps[name].values}
              most={maps.most}
              color={color}
              format={formatDuration}
              marked={marked}
            />
          </Panel>
        ))}
      </div>
      {payload.averages.length > 0 && (
        <Panel
          title="Average step per rank"
          note={payload.averages.length > 9 ? `${formatCount(payload.averages.length)} ranks` : undefined}
          actions={
            <>
              <span className={css.legend}>
                {PARTS.map(([part, title, name]) => (
                  <span key={part}>
                    <i className={`${rankBarsCss.part} ${rankBarsCss[name] ?? ''}`} /> {title}
                  </span>
                ))}
              </span>
              {payload.averages.length > 1 && (
                <button type="button" className="button quiet" onClick={() => onMerged(someRanks(payload))}>
                  One timeline
                </button>
              )}
            </>
          }
        >
          <RankBars
            rows={payload.averages}
            places={places}
            marked={payload.verdict.worker}
            onPick={onWorker}
          />
        </Panel>
      )}
      <Stragglers
        payload={payload}
        onWorker={onWorker}
        onLate={worker => put({ table: 'every', late: worker, sort: '-skew', collective: '' })}
      />
      <div
        className={`${splitCss.split} ${css.tables} ${chosen === null ? '' : `${splitCss.withDetail} ${css.withDetail}`}`}
        data-part="job-tables"
      >
        {table === 'worker' && <ByWorker payload={payload} before={before} />}
        {table === 'group' && <ByGroup payload={payload} before={before} />}
        {table === 'ranks' && <Ranks payload={payload} before={before} onWorker={onWorker} />}
        {table === 'every' && (
          <Instances
            payload={payload}
            selectors={selectors}
            sort={params.sort ?? 'start'}
            search={params.q ?? ''}
            filter={filter}
            onSort={sort => put({ sort })}
            onSearch={q => put({ q })}
            onPick={onPick}
            before={before}
          />
        )}
        {chosen !== null && (
          <InstanceDetail
            key={chosen}
            selectors={selectors}
            id={chosen}
            onClose={() => put({ collective: '' })}
            onMerged={onMerged}
            onEvent={(worker, at, event) =>
              select({ view: 'trace', worker, span: at, params: { event: String(event) } })
            }
          />
        )}
      </div>
    </div>
  );
}

function Problems({ payload }: { payload: Distributed }) {
  const problems = payload.problems.filter(problem => problem.kind !== 'loading');
  if (problems.length === 0) {
    return null;
  }
  return (
    <ul className={css.problems} data-part="job-problems">
      {problems.slice(0, PROBLEMS).map(problem => (
        <li key={`${problem.kind}/${problem.worker}/${problem.text}`}>
          <Icon name="warning" size={14} /> {problem.text}
        </li>
      ))}
      {problems.length > PROBLEMS && (
        <li className="dim">and {formatCount(problems.length - PROBLEMS)} more</li>
      )}
    </ul>
  );
}

/** Words of the server, in which `code` stands between backticks. */
function Spoken({ text }: { text: string }) {
  // oxlint-disable-next-line react/no-array-index-key -- the parts of one sentence, in order
  return text.split('`').map((part, i) => (i % 2 === 1 ? <code key={i}>{part}</code> : part));
}
