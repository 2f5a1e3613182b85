// Without advice: the answer to the question that comes next.
import { useState } from 'react';
import type {
  IdlePayload,
  KernelsPayload,
  OperatorsPayload,
  Overview,
  Selectors,
  ViewAnswer,
} from '../../api/types';
import { causeTitle } from '../../base/causes';
import { formatDuration, formatRatio } from '../../base/format';
import { useView } from '../../state/queries';
import { useSelection } from '../../state/selection';
import { Button } from '../../widgets/inputs/Button';
import { idleShare } from './select';
import css from './Advice.module.css';

/** Most rows of the answer, whose height is reserved if it comes late, so that nothing moves. */
const ROWS = 5;
/** Height of a row, px. */
const ROW_HEIGHT = 41;

/** A device that is idle for more than this share of the step raises the question why. */
const MIN_IDLE_SHARE = 0.1;

type View = 'idle' | 'kernels' | 'operators';

const QUESTIONS: Record<View, readonly [title: string, more: string]> = {
  idle: ['Where the idle time is', 'All causes'],
  kernels: ['Kernels with the most time', 'All kernels'],
  operators: ['Operators with the most time on the host', 'All operators'],
};

interface Line {
  name: string;
  ns: number;
}

interface Answered {
  lines: Line[];
  total: number;
}

type Payload = IdlePayload | KernelsPayload | OperatorsPayload;

/** Return the view that answers what to look at next; null if nothing was recorded that would. */
function nextView(overview: Overview): View | null {
  const { host, device } = overview.configuration.recorded;
  if (device) {
    return (idleShare(overview) ?? 0) > MIN_IDLE_SHARE ? 'idle' : 'kernels';
  }
  return host ? 'operators' : null;
}

function topRows(view: View, payload: Payload): Answered {
  if (view === 'idle') {
    const { sums, counted, idle_ns } = payload as IdlePayload;
    const steps = Math.max(counted, 1);
    return {
      lines: sums.map(({ cause, time_ns }) => ({ name: causeTitle(cause), ns: time_ns / steps })),
      total: idle_ns / steps,
    };
  }
  if (view === 'kernels') {
    const { rows, total_ns } = payload as KernelsPayload;
    return { lines: rows.map(row => ({ name: row.short_name, ns: row.total_ns })), total: total_ns };
  }
  const { rows, totals } = payload as OperatorsPayload;
  return { lines: rows.map(row => ({ name: row.name, ns: row.host_self_ns })), total: totals.host_self_ns };
}

/** What to look at where no fix is known; `found` is null until the answer is there. */
interface NextAnswer {
  view: View;
  found: Answered | null;
}

/** Request the answer to the next question; null if there is none, or while it isn't `enabled`. */
export function useNextAnswer(overview: Overview, selectors: Selectors, enabled: boolean): NextAnswer | null {
  const view = enabled ? nextView(overview) : null;
  const answer: { data?: ViewAnswer<Payload>; error: Error | null } = useView<Payload>(
    view ?? 'overview',
    selectors,
    {},
    view !== null,
  );
  if (view === null || answer.error) {
    return null;
  }
  return { view, found: answer.data?.state === 'ready' ? topRows(view, answer.data.payload) : null };
}

/** The largest causes of idle time, kernels, or operators. */
export function NextQuestion({ answer: { view, found } }: { answer: NextAnswer }) {
  const { select } = useSelection();
  const [wasLate] = useState(found === null);
  const [title, more] = QUESTIONS[view];
  const lines = (found?.lines ?? []).toSorted((a, b) => b.ns - a.ns).slice(0, ROWS);
  if (found && lines.length === 0 && !wasLate) {
    return null;
  }
  return (
    <section
      className={`panel ${css.advice}`}
      aria-label={title}
      aria-busy={found === null}
      data-part="next-question"
    >
      <header className={css.head}>
        <h2>{title}</h2>
        <span className={css.note}>
          <Button look="link" onClick={() => select({ view, params: {} })}>
            {more}
          </Button>
        </span>
      </header>
      <ol className={css.rows} style={wasLate ? { minHeight: ROWS * ROW_HEIGHT } : undefined}>
        {Array.from({ length: found ? lines.length : ROWS }, (_, i) => {
          const line = lines[i];
          const share = line && found && found.total > 0 ? line.ns / found.total : 0;
          return (
            <li key={i} className={css.row}>
              <span className={css.title}>
                <span className={css.rank}>{i + 1}</span>
                <span className={`${css.words} clip`} title={line?.name}>
                  {line?.name ?? '\u00a0'}
                </span>
              </span>
              <span className={css.bar}>
                {line && <i className={css.time} style={{ width: `${share * 100}%` }} />}
              </span>
              <span className={`${css.gain} ${css.plain}`}>
                {line && (
                  <>
                    {formatDuration(line.ns)} <span className="dim">{formatRatio(share)}</span>
                  </>
                )}
              </span>
            </li>
          );
        })}
      </ol>
    </section>
  );
}
