import { useMemo, useState, type CSSProperties } from 'react';
import type { ServingIterations, ServingPayload, ServingPhase, ServingStall } from '../../api/types';
import { formatCount, formatDuration, formatNumber, formatRatio, plural } from '../../base/format';
import { useView } from '../../state/queries';
import { useSelection } from '../../state/selection';
import { useTableState } from '../../state/table';
import { Answer } from '../../widgets/Answer';
import { SavePicture } from '../../widgets/charts/SavePicture';
import { Panel } from '../../widgets/Panel';
import { ScrollArea } from '../../widgets/ScrollArea';
import { Sentence, TextWithCode } from '../../widgets/Sentence';
import type { Column } from '../../widgets/table/columns';
import { DataTable } from '../../widgets/table/DataTable';
import { Term } from '../../widgets/Term';
import { Cost } from './Cost';
import css from './index.module.css';
import { Iterations } from './Iterations';
import { Origins } from './Origins';
import { IterationParts } from './IterationParts';
import { EngineRanks } from './EngineRanks';
import { CAUSE_TITLES, holdsAll, PHASE_COLORS, PHASES, shownShares, type IterationRange } from './select';

interface Props {
  payload: ServingPayload;
  crumb: string;
  run: string;
  worker: string;
  span: string;
}

export default function ServingView({ payload, crumb, run, worker, span }: Props) {
  const { select } = useSelection();
  const [chosen, setChosen] = useState<IterationRange | null>(null);
  const stretch = chosen && {
    first: String(payload.iteration_numbers[chosen.first]),
    last: String(payload.iteration_numbers[chosen.last]),
  };
  const sums = useView<ServingIterations>(
    'serving/iterations',
    { run, worker, span },
    stretch ?? {},
    stretch !== null && stretch.first !== stretch.last && !holdsAll(payload),
  ).data;
  const chosenSums = chosen !== null && sums?.state === 'ready' ? sums.payload : null;
  const shares = useMemo(() => shownShares(payload, chosen, chosenSums), [payload, chosen, chosenSums]);
  const count = payload.iterations_total;
  const open = (event: number | null | undefined) => {
    if (typeof event === 'number') {
      select({ view: 'trace', params: { event: String(event) } });
    }
  };
  return (
    <>
      <Answer
        crumb={`${crumb} · ${formatDuration(payload.rates.span_ns)}, ${plural(count, 'iteration')}`}
        why={<Sentence text={payload.details} />}
      >
        <Sentence text={payload.headline} />
      </Answer>
      <Figures payload={payload} />
      <Panel
        title={
          <>
            Iterations <Term id="iteration" />
          </>
        }
        note="height is duration"
        actions={
          <>
            <span className={css.phases}>
              {PHASES.map(phase => [phase, payload.phases.find(row => row.phase === phase)] as const).map(
                ([phase, row]) =>
                  row && (
                    <span key={phase}>
                      <i className="dot" style={{ background: PHASE_COLORS[phase] }} /> {phase}{' '}
                      {formatCount(row.iterations)}
                    </span>
                  ),
              )}
            </span>
            <SavePicture name="iterations" />
          </>
        }
      >
        <Iterations
          payload={payload}
          chosen={chosen}
          onChoose={setChosen}
          onOpen={i => open(payload.iterations.event[i])}
        />
      </Panel>
      <div className={css.grid2}>
        <div className={css.column}>
          <Panel title={`Where ${shares.title} goes, ${formatDuration(shares.duration)}`}>
            <IterationParts payload={payload} shares={shares} />
            <ScrollArea label="Phases">
              <PhaseTable phases={payload.phases} />
            </ScrollArea>
          </Panel>
          {payload.advice.length > 0 && (
            <Panel title="What to set">
              <ol className={css.advice}>
                {payload.advice.map(item => (
                  <li key={item.kind}>
                    <strong>
                      <Sentence text={item.title} />
                    </strong>
                    <span className="soft">
                      <Sentence text={item.detail} />
                    </span>
                  </li>
                ))}
              </ol>
            </Panel>
          )}
        </div>
        <Panel
          title={
            <>
              What an iteration costs <Term id="iteration_cost" />
            </>
          }
          actions={
            payload.cost.explained !== null && (
              <span className="dim">{`explains ${formatRatio(payload.cost.explained)}`}</span>
            )
          }
        >
          <Cost payload={payload} />
        </Panel>
      </div>
      {payload.stalls.length > 0 && (
        <Panel title="Stalls" note="what made requests wait longer than usual; double-click opens it">
          <Stalls stalls={payload.stalls} onOpen={stall => open(stall.event)} />
        </Panel>
      )}
      {/* They are answered later: below them nothing moves. */}
      <Origins run={run} worker={worker} span={span} onOpen={open} />
      <EngineRanks run={run} span={span} />
    </>
  );
}

/** Rates, and why some are unknown. */
function Figures({ payload: { rates } }: { payload: ServingPayload }) {
  const figures: [string, string | null, string, string | undefined][] = [
    ['Output', number(rates.output_tokens_per_s), 'tokens/s', rates.reasons.output_tokens_per_s],
    ['Prompt', number(rates.prompt_tokens_per_s), 'tokens/s', rates.reasons.prompt_tokens_per_s],
    [
      'Between tokens',
      rates.between_tokens_median_ns === null ? null : formatDuration(rates.between_tokens_median_ns),
      `median; p99 ${formatDuration(rates.between_tokens_p99_ns)}`,
      rates.reasons.between_tokens_median_ns,
    ],
    [
      'Requests in a batch',
      number(rates.requests_mean),
      `mean; ${rates.requests_min} to ${rates.requests_max}`,
      rates.reasons.requests_mean,
    ],
    [
      'KV cache',
      number(rates.kv_tokens_mean),
      `tokens; at most ${formatNumber(rates.kv_tokens_max ?? 0)}`,
      rates.reasons.kv_tokens_mean,
    ],
    [
      'Time to first token',
      rates.time_to_first_token_ns === null ? null : formatDuration(rates.time_to_first_token_ns),
      `median; p99 ${formatDuration(rates.time_to_first_token_p99_ns)}`,
      rates.reasons.time_to_first_token_ns,
    ],
    ...(rates.queue_median_ns === null
      ? []
      : [
          [
            'Time in queue',
            formatDuration(rates.queue_median_ns),
            `median; p99 ${formatDuration(rates.queue_p99_ns)}`,
            undefined,
          ] satisfies [string, string, string, undefined],
        ]),
    ...(rates.queued_mean === null
      ? []
      : [
          [
            'Requests in the queue',
            formatNumber(rates.queued_mean),
            `mean; at most ${formatCount(rates.queued_max ?? 0)}`,
            undefined,
          ] satisfies [string, string, string, undefined],
        ]),
  ];
  return (
    <section className="panel" aria-label="Rates" data-part="figures">
      <dl
        className={css.figures}
        style={{ '--figures': figures.length, '--half': Math.ceil(figures.length / 2) } as CSSProperties}
      >
        {figures.map(([title, value, unit]) => (
          <div key={title}>
            <dt>{title}</dt>
            <dd className={value === null ? 'dim' : css.value}>{value ?? 'unknown'}</dd>
            {value !== null && <dd className="dim">{unit}</dd>}
          </div>
        ))}
      </dl>
      {figures.map(
        ([title, value, , reason]) =>
          value === null &&
          reason && (
            <p key={title} className={css.unknown}>
              {title}: <TextWithCode text={reason} />
            </p>
          ),
      )}
    </section>
  );
}

const number = (value: number | null): string | null => (value === null ? null : formatNumber(value));

function PhaseTable({ phases }: { phases: ServingPhase[] }) {
  return (
    <table className={css.table}>
      <thead>
        <tr>
          <th>Phase</th>
          {['Iterations', 'Time', 'Median', 'p99', 'Tokens each', 'Idle'].map(title => (
            <th key={title} className="num">
              {title}
            </th>
          ))}
          <th>Mostly</th>
        </tr>
      </thead>
      <tbody>
        {phases.map(row => (
          <tr key={row.phase ?? 'unknown'}>
            <td>
              <i className="dot" style={{ background: PHASE_COLORS[row.phase ?? 'unknown'] }} />{' '}
              {row.phase ?? 'unknown'}
            </td>
            <td className="num">{formatCount(row.iterations)}</td>
            <td className="num">{formatRatio(row.share)}</td>
            <td className="num">{formatDuration(row.median_ns)}</td>
            <td className="num">{formatDuration(row.p99_ns)}</td>
            <td className="num">{number(row.tokens) ?? 'unknown'}</td>
            <td className="num">{formatRatio(row.idle_share)}</td>
            <td>{row.mostly === null ? 'none' : (CAUSE_TITLES[row.mostly] ?? row.mostly)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const STALL_COLUMNS: Column<ServingStall>[] = [
  { id: 'iteration', title: 'Iteration', kind: 'count', value: row => row.iteration, width: 80 },
  { id: 'start_ns', title: 'At', kind: 'duration', value: row => row.start_ns },
  { id: 'extra_ns', title: 'Extra time', kind: 'duration', value: row => row.extra_ns },
  { id: 'requests', title: 'Requests held up', kind: 'count', value: row => row.requests, width: 120 },
  {
    id: 'cause',
    title: 'Cause',
    kind: 'text',
    value: row => CAUSE_TITLES[row.cause] ?? row.cause,
    width: 220,
  },
];

function Stalls({ stalls, onOpen }: { stalls: ServingStall[]; onOpen: (stall: ServingStall) => void }) {
  const table = useTableState({ id: 'extra_ns', descending: true });
  return (
    <div className={css.stalls}>
      <DataTable
        name="serving-stalls"
        noun="stall"
        rows={stalls}
        columns={STALL_COLUMNS}
        rowKey={row => `${row.iteration} ${row.cause}`}
        {...table}
        placeholder="Filter stalls"
        onOpen={row => row && onOpen(row)}
      />
    </div>
  );
}
