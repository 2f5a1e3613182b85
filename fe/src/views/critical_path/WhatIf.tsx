import { useState } from 'react';
import type { Selectors, TargetRow } from '../../api/types';
import { formatDuration, formatRatio } from '../../base/format';
import { useView } from '../../state/queries';
import { Slider } from '../../widgets/inputs/Slider';
import { Panel } from '../../widgets/Panel';
import css from './WhatIf.module.css';

/** A what-if target, with its curve if it was computed. */
export type Target = Pick<TargetRow, 'target' | 'title' | 'step_ns'>;

interface Props {
  target: Target;
  percents: readonly number[];
  selectors: Selectors;
  /** What the times refer to: a step, or the trace if no steps were recorded. */
  base: string;
}

/** A step now and with a share of a target's time removed, chosen with a slider. */
export function WhatIf({ target, percents, base, selectors }: Props) {
  const [percent, setPercent] = useState(50);
  const result = useView<TargetRow>(
    'critical_path/what_if',
    selectors,
    { target: target.target },
    target.step_ns === null,
  );
  const curve = target.step_ns ?? (result.data?.state === 'ready' ? result.data.payload.step_ns : null);
  const now = curve?.[0] ?? null;
  const then = curve ? stepAt(percents, curve, percent) : null;
  const change = now !== null && then !== null ? now - then : null;
  return (
    <Panel
      title={`What if: ${target.title}`}
      note={`replays the ${base} with less time in the target; select a row below for another target`}
    >
      <Slider
        label="Less time"
        value={percent}
        step={5}
        format={value => `${value}%`}
        onChange={setPercent}
      />
      <dl className={css.bars} aria-live="polite">
        <Bar name="now" value={now} of={now} />
        <Bar name="then" value={then} of={now} />
      </dl>
      <p className="dim">
        {change === null || !now
          ? (result.error?.message ?? 'Computing…')
          : `Saves ${formatDuration(change)}, ${formatRatio(change / now)} of the ${base}`}
      </p>
      {isKernels(target.target) && (
        <p className="dim">The replay doesn’t apply rooflines: a kernel can’t run faster than its own.</p>
      )}
    </Panel>
  );
}

/** Whether a target is device work that a roofline bounds. */
const isKernels = (target: string) => target === 'device' || target.startsWith('kernel:');

function Bar({ name, value, of }: { name: string; value: number | null; of: number | null }) {
  return (
    <>
      <dt className="dim">{name}</dt>
      <dd>
        <i className={css[name]} style={{ width: `${value !== null && of ? (100 * value) / of : 0}%` }} />
      </dd>
      <dd>{formatDuration(value)}</dd>
    </>
  );
}

/**
 * Return the step time with `percent` of a target's time removed, interpolated between the computed percents.
 *
 * The step time is convex in the percent, so interpolation never overstates a saving.
 */
export function stepAt(
  percents: readonly number[],
  curve: readonly number[],
  percent: number,
): number | null {
  const above = percents.findIndex(each => each >= percent);
  const [low, high] = [percents[above - 1] ?? percents[above], percents[above]];
  const [from, to] = [curve[above - 1] ?? curve[above], curve[above]];
  if (low === undefined || high === undefined || from === undefined || to === undefined) {
    return null;
  }
  return high === low ? to : from + ((to - from) * (percent - low)) / (high - low);
}
