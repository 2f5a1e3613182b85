import type { DiffChange } from '../../api/types';
import { formatDuration } from '../../base/format';

const SAID = {
  slower: ['bad', '↑ slower', 'Real, and large enough to matter.'],
  faster: ['ok', '↓ faster', 'Real, and large enough to matter.'],
  noise: ['neutral', '≈ noise', 'The steps scatter as much, or it is too small to matter.'],
  equal: ['neutral', '= equal', 'No difference at all.'],
  unknown: ['neutral', '? unknown', 'A side has fewer than two steps: nothing can be told.'],
} as const;

interface Props {
  change: Pick<DiffChange, 'verdict' | 'low_ns' | 'high_ns' | 'q'>;
}

/** Whether a difference is real, in a word; the interval on hover. */
export function Verdict({ change }: Props) {
  const [kind, text, why] = SAID[change.verdict];
  return (
    <span className={`badge ${kind}`} title={`${why}${interval(change)}`}>
      {text}
    </span>
  );
}

export function interval({ low_ns, high_ns, q }: Props['change']): string {
  const range = low_ns === null || high_ns === null ? '' : ` 95%: ${signed(low_ns)} to ${signed(high_ns)}.`;
  return `${range}${q === null ? '' : ` False discovery rate ${q < 0.001 ? '< 0.001' : q.toFixed(3)}.`}`;
}

/** A difference with its sign. */
export const signed = (ns: number): string =>
  ns === 0 ? '0' : `${ns > 0 ? '+' : '−'}${formatDuration(Math.abs(ns))}`;

export function percent(ratio: number): string {
  const value = Math.abs(ratio * 100);
  const text = value.toLocaleString('en-US', { maximumFractionDigits: value < 10 ? 1 : 0 });
  return `${ratio > 0 ? '+' : ratio < 0 ? '−' : ''}${text}%`;
}
