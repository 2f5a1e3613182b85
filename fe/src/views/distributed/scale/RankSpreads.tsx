// How the average steps of the ranks of a large job differ, and where the rank found by a search lies.
import type { JobRank, JobRanks, RankSpreadRow } from '../../../api/types';
import { formatCount, formatDuration, plural } from '../../../base/format';
import { Button } from '../../../widgets/inputs/Button';
import { Panel } from '../../../widgets/Panel';
import { rankName } from '../select';
import { useStepWords } from '../../../state/steps';
import css from './scale.module.css';

/** Title and color of each measure with a row. */
const SPREAD_MEASURES: Partial<Record<RankSpreadRow['measure'], readonly [string, string]>> = {
  computation: ['Computation', '--c-kernel'],
  exposed: ['Exposed communication', '--c-communication'],
  other: ['Neither', '--c-other'],
  waiting: ['Waits for others', '--c-communication'],
  cost: ['Costs the others', '--c-late'],
};

interface RankSpreadsProps {
  spreads: RankSpreadRow[];
  found: JobRank | undefined;
  onFind: (worker: string) => void;
}

/** Percentiles of the average step of all ranks, one row per measure, with the found rank marked. */
export function RankSpreads({ spreads, found, onFind }: RankSpreadsProps) {
  const say = useStepWords();
  const shown = spreads.filter(each => SPREAD_MEASURES[each.measure]);
  return (
    <Panel
      title="Percentiles"
      note={say(
        `${plural(shown[0]?.ranks ?? 0, 'rank')}, average step; bar: p10 to p90, line: minimum to maximum`,
      )}
    >
      <ul className={css.spreads}>
        {shown.map(each => (
          <SpreadRow key={each.measure} spread={each} found={found} onFind={onFind} />
        ))}
      </ul>
    </Panel>
  );
}

function SpreadRow({ spread, found, onFind }: { spread: RankSpreadRow } & Omit<RankSpreadsProps, 'spreads'>) {
  const [title, color] = SPREAD_MEASURES[spread.measure]!;
  const range = Math.max(spread.most_ns - spread.least_ns, 1);
  const at = (value: number) => `${((value - spread.least_ns) / range) * 100}%`;
  const own = found?.[`${spread.measure}_ns`];
  return (
    <li data-part="spread">
      <span>
        <i className="dot" style={{ background: `var(${color})` }} /> {title}
      </span>
      <Button
        look="text"
        className="num"
        title={`Minimum: ${spread.least_worker}; click to find it`}
        onClick={() => onFind(spread.least_worker)}
      >
        {formatDuration(spread.least_ns)}
      </Button>
      <span
        className={css.line}
        title={[
          `p10 ${formatDuration(spread.p10_ns)}`,
          `median ${formatDuration(spread.median_ns)}`,
          `p90 ${formatDuration(spread.p90_ns)}`,
          `p99 ${formatDuration(spread.p99_ns)}`,
        ].join(', ')}
      >
        <i
          className={css.middle}
          style={{
            left: at(spread.p10_ns),
            right: `calc(100% - ${at(spread.p90_ns)})`,
            background: `var(${color})`,
          }}
        />
        <i className={css.tick} style={{ left: at(spread.median_ns) }} />
        <i className={css.dot} style={{ left: at(spread.p99_ns) }} />
        {own !== undefined && own !== null && (
          <i className={css.own} style={{ left: at(own) }} data-part="own" />
        )}
      </span>
      <Button
        look="text"
        className="num"
        title={`Maximum: ${spread.most_worker}; click to find it`}
        onClick={() => onFind(spread.most_worker)}
      >
        {formatDuration(spread.most_ns)}
      </Button>
      <span className="num dim">median {formatDuration(spread.median_ns)}</span>
    </li>
  );
}

/** Measures of the found rank, with their titles. */
const RANK_MEASURES = [
  ['computation', 'Computation'],
  ['exposed', 'Exposed communication'],
  ['other', 'Neither'],
  ['waiting', 'Waits for others'],
  ['cost', 'Costs the others'],
] as const;

interface FoundRankProps {
  search: string;
  answer: JobRanks | undefined;
  spreads: RankSpreadRow[];
  onWorker: (worker: string) => void;
  onTimeline: (rank: JobRank) => void;
  onAll: () => void;
}

/** The rank found by a search, next to the median of all ranks; as tall while there is none. */
export function FoundRank({ search, answer, spreads, onWorker, onTimeline, onAll }: FoundRankProps) {
  const rank = answer?.rows[0];
  if (answer && !rank) {
    return (
      <Panel title="Find a rank">
        <p className="dim">{`No rank, worker, or host matches “${search}”.`}</p>
      </Panel>
    );
  }
  const medians = new Map(spreads.map(each => [each.measure, each.median_ns]));
  return (
    <Panel
      title={rank ? rankName(rank.rank, rank.worker) : search || 'One rank'}
      note={
        rank
          ? [rank.worker, rank.host].filter(Boolean).join(' · ')
          : search
            ? 'searching…'
            : 'click a minimum or maximum, or search for a rank'
      }
      actions={
        answer &&
        answer.total > 1 && (
          <Button look="quiet" onClick={onAll}>
            {plural(answer.total, 'rank')} match
          </Button>
        )
      }
    >
      <p className={css.places}>
        {rank?.places.map(each => (
          <span key={each.family} className="badge">
            {each.family} {each.place} of {formatCount(each.size)}
          </span>
        ))}
        {rank?.reason && <span className="status warning">{rank.reason}</span>}
      </p>
      <dl className={css.times} data-part="found-rank">
        {RANK_MEASURES.map(([measure, title]) => {
          const time = rank?.[`${measure}_ns`] ?? null;
          const median = medians.get(measure);
          return (
            <div key={measure}>
              <dt>{title}</dt>
              <dd className="num">{time === null ? '–' : formatDuration(time)}</dd>
              <dd className="num dim">{median !== undefined && `median ${formatDuration(median)}`}</dd>
            </div>
          );
        })}
      </dl>
      <p className={css.tools}>
        <Button disabled={!rank} onClick={() => onWorker(rank!.worker)}>
          Overview
        </Button>
        <Button disabled={!rank} onClick={() => onTimeline(rank!)}>
          Timeline
        </Button>
      </p>
    </Panel>
  );
}
