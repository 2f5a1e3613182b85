// How much the ranks of a job differ: order statistics of their average steps on one scale.
import type { JobRank, RankSpreadRow } from '../../../api/types';
import { formatDuration, plural } from '../../../base/format';
import { Button } from '../../../widgets/inputs/Button';
import { Panel } from '../../../widgets/Panel';
import css from './scale.module.css';

const SHOWN: Partial<Record<RankSpreadRow['measure'], readonly [string, string]>> = {
  computation: ['Computation', '--c-kernel'],
  exposed: ['Exposed communication', '--c-communication'],
  other: ['Neither', '--c-other'],
  waiting: ['Waits for others', '--c-communication'],
  cost: ['Costs the others', '--c-late'],
};

interface Props {
  spreads: RankSpreadRow[];
  found: JobRank | undefined;
  onFind: (worker: string) => void;
}

export function Spreads({ spreads, found, onFind }: Props) {
  const shown = spreads.filter(each => SHOWN[each.measure]);
  return (
    <Panel
      title="Percentiles"
      note={`${plural(shown[0]?.ranks ?? 0, 'rank')}, average step; bar: p10 to p90, line: minimum to maximum`}
    >
      <ul className={css.spreads}>
        {shown.map(each => (
          <Row key={each.measure} spread={each} found={found} onFind={onFind} />
        ))}
      </ul>
    </Panel>
  );
}

function Row({ spread, found, onFind }: { spread: RankSpreadRow } & Omit<Props, 'spreads'>) {
  const [title, color] = SHOWN[spread.measure]!;
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
