import type { DistributedPayload } from '../../api/types';
import { formatCount, plural } from '../../base/format';
import { Icon } from '../../widgets/Icon';
import { FilesProgress } from '../../widgets/Pending';
import { Sentence } from '../../widgets/Sentence';
import css from './index.module.css';

/** Most problems that are listed; the others are counted. */
const MAX_PROBLEMS = 6;

const readText = ({ read_count: read, rank_count: all }: DistributedPayload): string =>
  read < all
    ? `${formatCount(read)} of ${plural(all, 'trace')} have been read.`
    : `All ${plural(all, 'trace')} have been read.`;

/** Progress of reading the files, then what is missing or can't be compared; its line stays when all are read. */
export function Problems({ payload, wasLoading }: { payload: DistributedPayload; wasLoading: boolean }) {
  const loading = payload.problems.find(problem => problem.kind === 'loading');
  const problems = payload.problems.filter(problem => problem !== loading);
  return (
    <>
      {loading ? (
        <FilesProgress done={payload.read_count} total={payload.rank_count}>
          <Sentence text={loading.text} />
        </FilesProgress>
      ) : (
        wasLoading && <p className={css.read}>{readText(payload)}</p>
      )}
      {problems.length > 0 && (
        <ul className={css.problems} data-part="job-problems">
          {problems.slice(0, MAX_PROBLEMS).map((problem, i) => (
            // oxlint-disable-next-line react/no-array-index-key -- the list is rebuilt with each payload
            <li key={i}>
              <Icon name="warning" size={14} />
              <span>
                <Sentence text={problem.text} />
              </span>
            </li>
          ))}
          {problems.length > MAX_PROBLEMS && (
            <li className="dim">and {formatCount(problems.length - MAX_PROBLEMS)} more</li>
          )}
        </ul>
      )}
    </>
  );
}
