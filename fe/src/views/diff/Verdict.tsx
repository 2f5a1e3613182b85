import type { DiffChange } from '../../api/types';
import { formatSignedDuration, plural } from '../../base/format';
import { useStepWords, type Say } from '../../state/steps';

const VERDICTS = {
  slower: ['bad', '↑ slower', 'Proven, and large enough to matter.'],
  faster: ['ok', '↓ faster', 'Proven, and large enough to matter.'],
  unchanged: ['neutral', '≈ unchanged', 'Any change is too small to matter.'],
  equal: ['neutral', '= equal', 'Exactly the same times throughout.'],
  cannot_tell: ['neutral', '? inconclusive', 'The recordings prove neither a change nor the absence of one.'],
  unknown: ['neutral', 'not recorded', 'At least one side doesn’t record it.'],
} as const;

/** A verdict in a word or two. */
export const verdictText = (verdict: DiffChange['verdict']): string => VERDICTS[verdict][1];

interface Props {
  change: Pick<DiffChange, 'verdict' | 'low_ns' | 'high_ns' | 'q'> & Partial<Pick<DiffChange, 'needed'>>;
}

/** The verdict on a difference as a badge, with the interval on hover. */
export function Verdict({ change }: Props) {
  const say = useStepWords();
  const [kind, text, why] = VERDICTS[change.verdict];
  return (
    <span className={`badge ${kind}`} title={`${why}${intervalText(change, say)}`}>
      {text}
    </span>
  );
}

/** Return the interval of a change, what would settle it, and its false discovery rate, as sentences. */
export function intervalText({ low_ns, high_ns, q, needed }: Props['change'], say: Say): string {
  const range =
    low_ns === null || high_ns === null
      ? ''
      : ` 95% interval: ${formatSignedDuration(low_ns)} to ${formatSignedDuration(high_ns)}.`;
  const more = needed
    ? say(` About ${plural(needed, 'step or recording', 'steps or recordings')} per side would settle it.`)
    : '';
  return `${range}${more}${q === null ? '' : ` False discovery rate ${q < 0.001 ? '< 0.001' : q.toFixed(3)}.`}`;
}
