// The rank found by a search, next to the median of all ranks.
import type { JobRank, JobRanks, RankSpreadRow } from '../../../api/types';
import { formatCount, formatDuration, plural } from '../../../base/format';
import { Button } from '../../../widgets/inputs/Button';
import { Panel } from '../../../widgets/Panel';
import { rankName } from '../select';
import css from './scale.module.css';

const MEASURES = [
  ['computation', 'Computation'],
  ['exposed', 'Exposed communication'],
  ['other', 'Neither'],
  ['waiting', 'Waits for others'],
  ['cost', 'Costs the others'],
] as const;

interface Props {
  search: string;
  answer: JobRanks | undefined;
  spreads: RankSpreadRow[];
  onWorker: (worker: string) => void;
  onTimeline: (rank: JobRank) => void;
  onAll: () => void;
}

export function Found({ search, answer, spreads, onWorker, onTimeline, onAll }: Props) {
  const rank = answer?.rows[0];
  if (!answer || !rank) {
    return (
      <Panel title="Find a rank">
        <p className="dim">{answer ? `No rank, worker, or host matches “${search}”.` : 'Searching'}</p>
      </Panel>
    );
  }
  const medians = new Map(spreads.map(each => [each.measure, each.median_ns]));
  return (
    <Panel
      title={rankName(rank.rank, rank.worker)}
      note={[rank.worker, rank.host].filter(Boolean).join(' · ')}
      actions={
        answer.total > 1 && (
          <Button look="quiet" onClick={onAll}>
            {plural(answer.total, 'rank')} match
          </Button>
        )
      }
    >
      <p className={css.places}>
        {rank.places.map(each => (
          <span key={each.family} className="badge">
            {each.family} {each.place} of {formatCount(each.size)}
          </span>
        ))}
        {rank.reason && <span className="status warning">{rank.reason}</span>}
      </p>
      <dl className={css.times} data-part="found-rank">
        {MEASURES.map(([measure, title]) => {
          const own = rank[`${measure}_ns`];
          const median = medians.get(measure);
          return (
            <div key={measure}>
              <dt>{title}</dt>
              <dd className="num">{own === null ? '–' : formatDuration(own)}</dd>
              <dd className="num dim">{median !== undefined && `median ${formatDuration(median)}`}</dd>
            </div>
          );
        })}
      </dl>
      <p className={css.tools}>
        <Button onClick={() => onWorker(rank.worker)}>Overview</Button>
        <Button onClick={() => onTimeline(rank)}>Timeline</Button>
      </p>
    </Panel>
  );
}
