import { TRACE_KEYS } from '../keys';
import findCss from '../tools/Find.module.css';
import css from './Hint.module.css';

/** What stands below the timeline while nothing is selected. */
export function Hint({ error }: { error: string | null }) {
  return (
    <div className={css.hint}>
      {error !== null && <p className={findCss.problem}>{error}</p>}
      <p>Click a slice to see all of it; drag over the timeline, or click a step, to add up a window.</p>
      <ul>
        {TRACE_KEYS.map(([key, text]) => (
          <li key={key}>
            <kbd>{key}</kbd> {text}
          </li>
        ))}
      </ul>
    </div>
  );
}
