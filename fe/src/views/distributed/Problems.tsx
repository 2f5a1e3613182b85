import type { Distributed } from '../../api/types';
import { formatCount } from '../../base/format';
import { Icon } from '../../widgets/Icon';
import { FilesProgress } from '../../widgets/Pending';
import { Sentence } from '../../widgets/Sentence';
import css from './index.module.css';

const LISTED = 6;

/** How far the reading is, then what is missing or cannot be compared. */
export function Problems({ payload }: { payload: Distributed }) {
  const loading = payload.problems.find(problem => problem.kind === 'loading');
  const problems = payload.problems.filter(problem => problem !== loading);
  return (
    <>
      {loading && (
        <FilesProgress done={payload.read_count} total={payload.rank_count}>
          <Sentence text={loading.text} />
        </FilesProgress>
      )}
      {problems.length > 0 && (
        <ul className={css.problems} data-part="job-problems">
          {problems.slice(0, LISTED).map((problem, i) => (
            // oxlint-disable-next-line react/no-array-index-key -- the list is made anew with each payload
            <li key={i}>
              <Icon name="warning" size={14} />
              <span>
                <Sentence text={problem.text} />
              </span>
            </li>
          ))}
          {problems.length > LISTED && (
            <li className="dim">and {formatCount(problems.length - LISTED)} more</li>
          )}
        </ul>
      )}
    </>
  );
}
