import type { ProgressInfo } from '../api/types';
import { formatBytes, plural } from '../base/format';
import { Icon } from '../widgets/Icon';
import css from './Loading.module.css';
import answerCss from '../widgets/Answer.module.css';

const STAGES = [
  ['reading', 'Read the file'],
  ['arranging', 'Arrange events'],
  ['analyzing', 'Find threads, links, steps'],
  ['saving', 'Save to cache'],
] as const;

interface Props {
  run: string;
  progress: ProgressInfo | null;
  waiting?: boolean;
  activity?: string;
}

/** A skeleton of the page with the progress of reading; it stays invisible for the first moment. */
export function Loading({ run, progress, waiting = false, activity = 'Reading the trace' }: Props) {
  const current = STAGES.findIndex(([stage]) => stage === progress?.stage);
  const share = progress?.bytes_total ? progress.bytes_done / progress.bytes_total : null;
  return (
    <div className={css.appearing} aria-busy="true">
      <div className={answerCss.answer} data-part="answer">
        <p className={answerCss.crumb}>{run || '\u00a0'}</p>
        <div className="skeleton" style={{ width: '56%', height: 22, marginTop: 6 }} />
        <div className="skeleton" style={{ width: '38%', height: 12, marginTop: 10 }} />
      </div>
      <section className={`panel ${css.loading}`} role="status">
        <div className={css.line}>
          <strong>{waiting ? 'Queued' : activity}</strong>
          <span className="dim">{STAGES[current]?.[1].toLowerCase()}</span>
          <span className="grow" />
          {progress && progress.bytes_total > 0 && (
            <span className="dim">
              {formatBytes(progress.bytes_done)} of {formatBytes(progress.bytes_total)}
              {progress.events > 0 && ` · ${plural(progress.events, 'event')}`}
            </span>
          )}
        </div>
        <progress max={1} value={share ?? undefined} aria-label="Progress" />
        <ol>
          {STAGES.map(([stage, title], i) => (
            <li key={stage} className={i < current ? css.done : i === current ? css.now : undefined}>
              {i < current ? <Icon name="check" size={14} /> : <i />}
              {title}
            </li>
          ))}
        </ol>
      </section>
      <div className="skeleton panel" style={{ height: 152 }} />
      <div className={css.columns}>
        <div className="skeleton panel" style={{ height: 290 }} />
        <div className="skeleton panel" style={{ height: 290 }} />
      </div>
    </div>
  );
}
