import type { ReactNode } from 'react';
import findCss from '../find/Find.module.css';
import css from './Status.module.css';

/** The last line of the timeline: what went wrong, else what can be done; what the colors mean. */
export function Status({ error, legend }: { error: string | null; legend?: ReactNode }) {
  return (
    <div className={css.status} data-part="status">
      {error === null ? (
        <span className="dim">
          Click a slice for all of it · drag, or click a step, to add up a window · <kbd>?</kbd> lists the
          keys
        </span>
      ) : (
        <span className={findCss.problem} role="alert">
          {error}
        </span>
      )}
      {legend}
    </div>
  );
}
