import type { ReactNode } from 'react';
import { categoryColor, categoryInk, type Category } from '../../base/category';
import { exactDuration, formatDuration, formatRatio } from '../../base/format';
import { useWidth } from '../../widgets/charts/useWidth';
import { useStepWords } from '../../state/steps';
import { busy, parts, type CategoryPart, type Shown } from './select';
import css from './StepBar.module.css';

/** Layout, px. */
const BAR = 38;
const MIN_LABEL_WIDTH = 112; // a wider part has its label inside
const LINE = 15;

interface Placed extends CategoryPart {
  x: number;
  width: number;
}

interface Leader {
  part: Placed;
  row: number;
  right: boolean;
}

/**
 * Parts too narrow for a label get one below, outwards first, on the first row where the text meets neither
 * another text nor the line of one below it.
 */
function placeLeaders(narrow: Placed[], width: number): Leader[] {
  const middle = (part: Placed) => part.x + part.width / 2;
  const leftHalf = narrow.filter(part => middle(part) < width / 2).reverse();
  const rightHalf = narrow.filter(part => middle(part) >= width / 2);
  const leaders: (Leader & { from: number; to: number })[] = [];
  for (const part of [...leftHalf, ...rightHalf]) {
    const at = middle(part);
    const right = at < width / 2;
    const length = 12 + 6.4 * `${part.title} ${formatDuration(part.ns)}`.length;
    const [from, to] = right ? [at, at + length] : [at - length, at];
    const meets = (row: number) =>
      leaders.some(
        other =>
          (other.row === row && from < other.to && to > other.from) ||
          (other.row >= row && from < middle(other.part) && to > middle(other.part)),
      );
    let row = 0;
    while (meets(row)) {
      row += 1;
    }
    leaders.push({ part, row, right, from, to });
  }
  return leaders;
}

interface Props {
  now: Shown;
  device: string | null;
  /** Opens what a part counts. */
  onOpen: (category: Category) => void;
}

export function StepBar({ now, device, onOpen }: Props) {
  // Without kernels it is unknown when a device is busy; without copies it may be busy where it looks idle.
  const isBusyKnown = device !== null && now.times.kernel !== null;
  const top = isBusyKnown ? 34 : 4; // room for the brackets that say busy and idle
  const { ref, width } = useWidth();
  const say = useStepWords();
  const found = parts(now.times, now.duration);
  const toX = (ns: number) => (now.duration > 0 ? (ns / now.duration) * width : 0);
  const placed: Placed[] = found.map(part => ({ ...part, x: toX(part.from), width: toX(part.ns) }));
  const leaders = placeLeaders(
    placed.filter(part => part.width < MIN_LABEL_WIDTH),
    width,
  );
  const rowsBelow = leaders.reduce((rows, leader) => Math.max(rows, leader.row + 1), 0);
  const height = top + BAR + 8 + rowsBelow * LINE + 6;
  const busyShare = now.duration > 0 ? busy(now.times) / now.duration : 0;
  const [atLeast, atMost] = now.times.memcpy === null ? [' at least', ' at most'] : ['', ''];
  return (
    <div ref={ref} style={{ minHeight: top + BAR + 30 }}>
      {width > 0 && (
        <svg
          width={width}
          height={height}
          role="group"
          aria-label={say('What the step is spent on')}
          data-picture={`${now.title}, ${formatDuration(now.duration)}: each category counts only time not counted to its left`}
        >
          {isBusyKnown && busyShare > 0 && (
            <Bracket
              x={0}
              width={busyShare * width}
              label={`${device} busy${atLeast}`}
              ns={busy(now.times)}
              share={busyShare}
              limit={width}
              onOpen={() => onOpen('kernel')}
            />
          )}
          {isBusyKnown && busyShare < 1 && (
            <Bracket
              x={busyShare * width}
              width={(1 - busyShare) * width}
              label={`${device} idle${atMost}`}
              ns={now.duration - busy(now.times)}
              share={1 - busyShare}
              limit={width}
              onOpen={() => onOpen('other')}
            />
          )}
          {placed.map(part => (
            <Link
              key={part.category}
              label={`${part.title} ${formatDuration(part.ns)} · ${formatRatio(part.share)}`}
              onOpen={() => onOpen(part.category)}
            >
              <rect
                x={part.x}
                y={top}
                width={Math.max(part.width - 1, 0.75)}
                height={BAR}
                fill={categoryColor(part.category)}
                data-legend={`${part.title} ${formatDuration(part.ns)}`}
              >
                <title>{`${part.title}: ${exactDuration(part.ns)}, ${formatRatio(part.share)}`}</title>
              </rect>
              {part.width >= MIN_LABEL_WIDTH && (
                <g style={{ fill: categoryInk(part.category) }} pointerEvents="none">
                  <text x={part.x + 10} y={top + 16} className="strong">
                    {`${part.title} `}
                  </text>
                  <text x={part.x + 10} y={top + 30}>
                    {formatDuration(part.ns)} · {formatRatio(part.share)}
                  </text>
                </g>
              )}
            </Link>
          ))}
          {leaders.map(({ part, row, right }) => {
            const at = part.x + part.width / 2;
            const y = top + BAR + 14 + row * LINE;
            return (
              <g key={part.category}>
                <path d={`M${at} ${top + BAR + 2}V${y - 4}h${right ? 6 : -6}`} className="leader" />
                {/* The part is too narrow to click; the keyboard reaches the part itself. */}
                <text
                  x={at + (right ? 10 : -10)}
                  y={y}
                  textAnchor={right ? 'start' : 'end'}
                  className={`soft ${css.link}`}
                  aria-hidden="true"
                  onClick={() => onOpen(part.category)}
                >
                  {part.title} <tspan className="strong">{formatDuration(part.ns)}</tspan>
                </text>
              </g>
            );
          })}
        </svg>
      )}
    </div>
  );
}

interface LinkProps {
  label: string;
  onOpen: () => void;
  children: ReactNode;
}

/** A part of the chart that opens what it counts. */
function Link({ label, onOpen, children }: LinkProps) {
  return (
    <g
      role="link"
      tabIndex={0}
      aria-label={label}
      className={css.link}
      onClick={onOpen}
      onKeyDown={event => event.key === 'Enter' && onOpen()}
    >
      {children}
    </g>
  );
}

interface BracketProps {
  x: number;
  width: number;
  label: string;
  ns: number;
  share: number;
  limit: number;
  onOpen: () => void;
}

function Bracket({ x, width, label, ns, share, limit, onOpen }: BracketProps) {
  const text = `${label} ${formatDuration(ns)} · ${formatRatio(share)}`;
  const half = 3.2 * text.length;
  // Over a narrow part the label would leave the chart or meet its neighbor.
  const fits = width > 2 * half;
  const middle = Math.min(Math.max(x + width / 2, half), limit - half);
  return (
    <g>
      <path d={`M${x + 0.5} 30v-6h${Math.max(width - 1.5, 0)}v6`} className="leader" />
      {fits && (
        <Link label={text} onOpen={onOpen}>
          <text x={middle} y={16} textAnchor="middle" className="soft">
            {label} <tspan className="strong">{formatDuration(ns)}</tspan> · {formatRatio(share)}
          </text>
        </Link>
      )}
    </g>
  );
}
