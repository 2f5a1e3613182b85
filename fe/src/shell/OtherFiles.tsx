import type { OtherTools } from '../api/types';
import { formatCount } from '../base/format';
import { Icon } from '../widgets/Icon';
import css from './HealthDrawer.module.css';

/** The files of other tools in the log folders: what they are, and what to do with them. */
export function OtherFiles({ others }: { others: OtherTools }) {
  return (
    <div className={css.notes}>
      <ul>
        {others.kinds.map(({ kind, advice, count, files }) => (
          <li key={kind}>
            <span className="status info" title="info">
              <Icon name="info" size={14} />
            </span>
            <span>
              {kind}: {advice}
              <span className="dim" title={files.join('\n')}>
                {' '}
                · {files[0]}
                {count > 1 && ` and ${formatCount(count - 1)} more`}
              </span>
            </span>
          </li>
        ))}
      </ul>
    </div>
  );
}
