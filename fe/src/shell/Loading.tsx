import type { ProgressInfo } from '../api/types';
import { formatBytes, plural } from '../base/format';
import { Icon } from '../widgets/Icon';
import { Opening } from '../widgets/Opening';
import css from './Loading.module.css';

const STAGES = [
  ['reading', 'Read the file'],
  ['arranging', 'Arrange its events'],
  ['analyzing', 'Analyze them'],
  ['saving', 'Save to cache'],
] as const;

interface Props {
  /** The view that is being opened, and the trace as far as it is known. */
  title: string | undefined;
  crumb: string | undefined;
  progress: ProgressInfo | null;
  waiting?: boolean;
  activity?: string;
}

/** The frame of a view whose file, a trace or a snapshot of memory, is read, with the progress. */
export function Loading({ title, crumb, progress, waiting = false, activity = 'Reading the file' }: Props) {
  const current = STAGES.findIndex(([stage]) => stage === progress?.stage);
  const share = progress?.bytes_total ? progress.bytes_done / progress.bytes_total : null;
  return (
    <Opening title={title} crumb={crumb}>
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
          {STAGES.map(([stage, name], i) => (
            <li key={stage} className={i < current ? css.done : i === current ? css.now : undefined}>
              {i < current ? <Icon name="check" size={14} /> : <i />}
              {name}
            </li>
          ))}
        </ol>
      </section>
    </Opening>
  );
}
