import { useMemo } from 'react';
import { formatRatio } from '../../base/format';
import css from './Donut.module.css';

export interface Share {
  key: string;
  title: string;
  value: number;
}

interface Props {
  title: string;
  note?: string;
  shares: Share[];
  /** How many get a part of their own; the rest are one part. */
  top: number;
  color: string;
  format: (value: number) => string;
  onPick?: (key: string) => void;
  picked?: string;
}

const SIZE = 72;
const OUTER = 34;
const INNER = 21;

/** A ring of the largest shares with its legend; all parts together are the whole. */
export function Donut({ title, note, shares, top, color, format, onPick, picked }: Props) {
  const sorted = useMemo(
    () => shares.filter(share => share.value > 0).sort((a, b) => b.value - a.value),
    [shares],
  );
  const total = sorted.reduce((sum, share) => sum + share.value, 0);
  const parts = sorted.slice(0, top);
  const rest = sorted.slice(top);
  const others = rest.reduce((sum, share) => sum + share.value, 0);
  const starts = parts.reduce<number[]>(
    (edges, part) => [...edges, edges[edges.length - 1]! + part.value],
    [0],
  );
  const arcs = parts.map((part, i) => ({
    part,
    path: arc(starts[i]! / total, starts[i + 1]! / total),
    fill: shade(color, i, parts.length),
  }));
  return (
    <figure className={css.donut} data-part="donut">
      <figcaption>
        <strong>{title}</strong> {total > 0 ? (note ?? format(total)) : 'none'}
      </figcaption>
      <svg width={SIZE} height={SIZE} viewBox={`0 0 ${SIZE} ${SIZE}`} role="img" aria-label={title}>
        <circle cx={SIZE / 2} cy={SIZE / 2} r={(OUTER + INNER) / 2} className={css.rest} />
        {arcs.map(({ part, path, fill }) => (
          <path key={part.key} d={path} fill={fill}>
            <title>{`${part.title}: ${format(part.value)}, ${formatRatio(part.value / total)}`}</title>
          </path>
        ))}
      </svg>
      <ol>
        {arcs.map(({ part, fill }) => (
          <li key={part.key}>
            <button
              type="button"
              aria-pressed={part.key === picked}
              title={`${part.title}: ${format(part.value)}`}
              onClick={() => onPick?.(part.key)}
            >
              <i className="dot" style={{ background: fill }} />
              <span className="clip">{part.title}</span>
              <span className="num">{formatRatio(part.value / total)}</span>
            </button>
          </li>
        ))}
        {rest.length > 0 && (
          <li className="dim">
            <i className={`dot ${css.remainder}`} />
            <span className="clip">{rest.length.toLocaleString('en-US')} others</span>
            <span className="num">{formatRatio(others / total)}</span>
          </li>
        )}
      </ol>
    </figure>
  );
}

/** Lighter from part to part, towards the surface, so that both themes keep the order. */
function shade(color: string, index: number, count: number): string {
  const strength = 100 - (index / Math.max(count, 1)) * 72;
  return `color-mix(in srgb, ${color} ${strength}%, var(--sf))`;
}

function arc(from: number, to: number): string {
  if (to - from >= 0.9999) {
    return `${arc(from, from + 0.5)}${arc(from + 0.5, from + 0.9998)}`;
  }
  const point = (turn: number, radius: number) => {
    const angle = 2 * Math.PI * turn - Math.PI / 2;
    return `${SIZE / 2 + radius * Math.cos(angle)} ${SIZE / 2 + radius * Math.sin(angle)}`;
  };
  const large = to - from > 0.5 ? 1 : 0;
  return (
    `M${point(from, OUTER)}A${OUTER} ${OUTER} 0 ${large} 1 ${point(to, OUTER)}` +
    `L${point(to, INNER)}A${INNER} ${INNER} 0 ${large} 0 ${point(from, INNER)}Z`
  );
}
