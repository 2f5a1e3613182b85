import type { DiffChange } from '../../api/types';
import { formatBytes, formatDuration, formatPoints, formatRatio } from '../../base/format';

const VERDICTS = {
  slower: ['bad', '↑ slower', 'Significant, and large enough to matter.'],
  faster: ['ok', '↓ faster', 'Significant, and large enough to matter.'],
  noise: ['neutral', '≈ noise', 'Within the scatter of the steps, or too small to matter.'],
  equal: ['neutral', '= equal', 'No difference at all.'],
  unknown: [
    'neutral',
    '? unknown',
    'A side has fewer than two steps: the change cannot be told from chance.',
  ],
} as const;

interface Props {
  change: Pick<DiffChange, 'verdict' | 'low_ns' | 'high_ns' | 'q'>;
}

/** Whether a difference is significant, in a word; the interval on hover. */
export function Verdict({ change }: Props) {
  const [kind, text, why] = VERDICTS[change.verdict];
  return (
    <span className={`badge ${kind}`} title={`${why}${interval(change)}`}>
      {text}
    </span>
  );
}

export function interval({ low_ns, high_ns, q }: Props['change']): string {
  const range =
    low_ns === null || high_ns === null ? '' : ` 95% interval: ${signed(low_ns)} to ${signed(high_ns)}.`;
  return `${range}${q === null ? '' : ` False discovery rate ${q < 0.001 ? '< 0.001' : q.toFixed(3)}.`}`;
}

const withSign = (value: number, text: string): string => `${value > 0 ? '+' : value < 0 ? '−' : ''}${text}`;

/** Differences with their sign: of times, of sizes, relative, of two shares. */
export const signed = (ns: number): string => (ns === 0 ? '0' : withSign(ns, formatDuration(Math.abs(ns))));
export const signedBytes = (bytes: number): string => withSign(bytes, formatBytes(Math.abs(bytes)));
export const percent = (ratio: number): string => withSign(ratio, formatRatio(Math.abs(ratio)));
export const points = (share: number): string => withSign(share, formatPoints(Math.abs(share)));
