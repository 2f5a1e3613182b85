import type { ServingPayload } from '../../api/types';
import { formatDuration, formatRatio } from '../../base/format';
import css from './index.module.css';
import { CAUSE_COLORS, CAUSE_TITLES, type Shares } from './select';

/** Where an iteration goes: the device's work, then its idle time by cause. */
export function IterationParts({ payload, shares }: { payload: ServingPayload; shares: Shares }) {
  const parts = [
    {
      key: 'busy',
      title: payload.on_device ? 'Device busy' : 'Model',
      ns: shares.busy,
      color: 'var(--c-kernel)',
    },
    ...shares.causes.map(({ cause, ns }) => ({
      key: cause,
      title: CAUSE_TITLES[cause] ?? cause,
      ns,
      color: CAUSE_COLORS[cause] ?? 'var(--x-unknown)',
    })),
  ];
  const total = parts.reduce((sum, part) => sum + part.ns, 0);
  return (
    <div data-part="iteration-parts">
      <div className={css.bar}>
        {parts.map(part => (
          <i
            key={part.key}
            style={{ flexGrow: part.ns, background: part.color }}
            title={`${part.title}: ${formatDuration(part.ns)}`}
          />
        ))}
      </div>
      <ul className={css.legend}>
        {parts.map(part => (
          <li key={part.key}>
            <i className="dot" style={{ background: part.color }} /> {part.title}{' '}
            <strong>{formatDuration(part.ns)}</strong>{' '}
            <span className="dim">{formatRatio(total ? part.ns / total : 0)}</span>
          </li>
        ))}
      </ul>
      <Families payload={payload} />
    </div>
  );
}

/** The kernels of decode iterations by family. */
function Families({ payload }: { payload: ServingPayload }) {
  const entries = Object.entries(payload.families);
  const total = entries.reduce((sum, [, ns]) => sum + ns, 0);
  if (total === 0) {
    return null;
  }
  const shown = entries.slice(0, 4).map(([family, ns]) => `${family} ${formatRatio(ns / total)}`);
  return <p className={css.note}>{`Kernels of decode iterations: ${shown.join(', ')}.`}</p>;
}
