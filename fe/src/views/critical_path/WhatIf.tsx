import { useState } from 'react';
import type { Selectors, TargetRow } from '../../api/types';
import { formatDuration, formatRatio } from '../../base/format';
import { useView } from '../../state/queries';
import { Slider } from '../../widgets/inputs/Slider';
import { Panel } from '../../widgets/Panel';
import { stepAt } from './curve';
import css from './WhatIf.module.css';

/** What could be faster, with its curve where it is known. */
export type Target = Pick<TargetRow, 'target' | 'title' | 'step_ns'>;

interface Props {
  target: Target;
  percents: readonly number[];
  selectors: Selectors;
  /** What is replayed: a step, or the trace if none is recorded. */
  whole: 'step' | 'trace';
}

/** A step now, and with a part of a target's time gone: a slider between what the server has computed. */
export function WhatIf({ target, percents, whole, selectors }: Props) {
  const [less, setLess] = useState(50);
  const asked = useView<TargetRow>(
    'critical_path/what_if',
    selectors,
    { target: target.target },
    target.step_ns === null,
  );
  const curve = target.step_ns ?? (asked.data?.state === 'ready' ? asked.data.payload.step_ns : null);
  const now = curve?.[0] ?? null;
  const then = curve ? stepAt(percents, curve, less) : null;
  const change = now !== null && then !== null ? now - then : null;
  return (
    <Panel
      title={`What if: ${target.title}`}
      note={`what follows of the ${whole} is replayed; a row of the table chooses another target`}
    >
      <Slider label="Less time" value={less} step={5} format={value => `${value}%`} onChange={setLess} />
      <dl className={css.bars} aria-live="polite">
        <Bar name="now" value={now} of={now} />
        <Bar name="then" value={then} of={now} />
      </dl>
      <p className="dim">
        {change === null || !now
          ? (asked.error?.message ?? 'Computing…')
          : `${formatDuration(change)} less, ${formatRatio(change / now)} of the ${whole}`}
      </p>
    </Panel>
  );
}

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
