import { scaleLinear } from 'd3-scale';
import { useMemo, useState, type KeyboardEvent, type PointerEvent } from 'react';
import type { ServingPayload } from '../../api/types';
import { formatCount, formatDuration } from '../../base/format';
import { useWidth } from '../../widgets/charts/useWidth';
import css from './Iterations.module.css';
import {
  barsPath,
  CAUSE_TITLES,
  describe,
  iterationsExtent,
  iterationAt,
  PHASE_COLORS,
  stepsPath,
  type IterationRange,
} from './select';

/** Layout, px. */
const LEFT = 56;
const TOP = 18;
const BARS = 150;
const LINE = 44;
const GAP = 22;

interface Props {
  payload: ServingPayload;
  chosen: IterationRange | null;
  onChoose: (range: IterationRange | null) => void;
  onOpen: (iteration: number) => void;
}

/** Iterations over time, and beneath them on the same axis the running requests and the KV cache. */
export function Iterations({ payload, chosen, onChoose, onOpen }: Props) {
  const { ref, width } = useWidth();
  const { iterations: columns, stalls } = payload;
  const [pointed, setPointed] = useState<number | null>(null);
  const [from, setFrom] = useState<number | null>(null);
  const { begin, end } = useMemo(() => iterationsExtent(columns), [columns]);
  const longest = useMemo(() => columns.duration_ns.reduce((most, ns) => Math.max(most, ns), 1), [columns]);
  const inner = Math.max(width - LEFT, 1);
  const x = useMemo(() => scaleLinear([begin, end], [LEFT, LEFT + inner]), [begin, end, inner]);
  const y = useMemo(() => scaleLinear([0, longest], [TOP + BARS, TOP]), [longest]);
  const lines = useMemo(
    () =>
      [
        { title: 'requests', values: columns.requests, area: false },
        { title: 'KV tokens', values: columns.kv_tokens, area: true },
      ]
        .filter(({ values }) => values.some(value => value !== null))
        .map(({ title, values, area }, i) => {
          const top = TOP + BARS + GAP + i * (GAP + LINE);
          const most = values.reduce<number>((high, value) => Math.max(high, value ?? 0), 1);
          const path = stepsPath(columns, values, x, value => top + LINE - (LINE * value) / most);
          return { title, area, top, most, path };
        }),
    [columns, x],
  );
  const bars = useMemo(
    () =>
      ['decode', 'mixed', 'prefill', 'unknown'].map(phase => ({
        phase,
        path: barsPath(columns, phase, x, y),
      })),
    [columns, x, y],
  );
  const worst = stalls.reduce<(typeof stalls)[number] | null>(
    (most, stall) => (most === null || stall.extra_ns > most.extra_ns ? stall : most),
    null,
  );
  const height = TOP + BARS + lines.length * (GAP + LINE) + 20;
  const at = (event: PointerEvent) =>
    iterationAt(columns, x.invert(event.clientX - event.currentTarget.getBoundingClientRect().left));
  const range =
    pointed === null
      ? chosen
      : { first: Math.min(from ?? pointed, pointed), last: Math.max(from ?? pointed, pointed) };
  const onKeyDown = (event: KeyboardEvent) => {
    const now = pointed ?? chosen?.first ?? 0;
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by !== undefined) {
      event.preventDefault();
      setFrom(event.shiftKey ? (from ?? now) : null);
      setPointed(Math.min(Math.max(now + by, 0), columns.start_ns.length - 1));
    } else if (event.key === 'Enter' && range) {
      event.preventDefault();
      onChoose(range);
    } else if (event.key === 'Escape') {
      setFrom(null);
      onChoose(null);
    }
  };
  return (
    <div ref={ref} className={css.chart} data-part="iterations">
      {width > LEFT && (
        // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- an application has the keys
        <svg
          width={width}
          height={height}
          role="application"
          // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- an application has the keys
          tabIndex={0}
          aria-label="Iterations: arrow keys move between them, Shift+arrow selects several, Enter shows only those"
          data-picture="Iterations over time: height is duration; running requests and KV tokens below"
          onKeyDown={onKeyDown}
          onBlur={() => setPointed(null)}
          onPointerDown={event => {
            // A finger that taps has not moved there before.
            setPointed(at(event));
            setFrom(at(event));
            event.currentTarget.setPointerCapture(event.pointerId);
          }}
          onPointerMove={event => setPointed(at(event))}
          onPointerUp={() => {
            if (range) {
              const again = chosen && chosen.first === range.first && chosen.last === range.last;
              onChoose(again ? null : range);
            }
            setFrom(null);
          }}
          onPointerLeave={() => {
            setFrom(null);
            setPointed(null);
          }}
          onDoubleClick={() => pointed !== null && onOpen(pointed)}
        >
          {y.ticks(3).map(tick => (
            <g key={tick}>
              <line className={css.grid} x1={LEFT} x2={width} y1={y(tick)} y2={y(tick)} />
              <text className="dim" x={LEFT - 6} y={y(tick) + 4} textAnchor="end">
                {tick === 0 ? '0' : formatDuration(tick)}
              </text>
            </g>
          ))}
          {range && (
            <rect
              className={css.chosen}
              x={x(columns.start_ns[range.first]!)}
              width={Math.max(
                x(columns.start_ns[range.last]! + columns.duration_ns[range.last]!) -
                  x(columns.start_ns[range.first]!),
                2,
              )}
              y={TOP - 6}
              height={height - TOP - 14}
            />
          )}
          {bars.map(({ phase, path }) => (
            <path key={phase} d={path} style={{ fill: PHASE_COLORS[phase] }} data-legend={phase} />
          ))}
          {worst && (
            <g>
              <path className={css.stall} d={`M${x(worst.start_ns)} ${TOP - 2}l4 -7h-8z`} />
              <text
                className="soft halo"
                x={x(worst.start_ns) + (x(worst.start_ns) > LEFT + inner / 2 ? -8 : 8)}
                y={TOP - 3}
                textAnchor={x(worst.start_ns) > LEFT + inner / 2 ? 'end' : 'start'}
              >
                {`longest stall ${formatDuration(worst.extra_ns)}: ${(CAUSE_TITLES[worst.cause] ?? worst.cause).toLowerCase()}`}
              </text>
            </g>
          )}
          {lines.map(({ title, area, top, most, path }) => {
            return (
              <g key={title}>
                <text className="dim" x={LEFT} y={top - 5}>
                  {`${title}, at most ${formatCount(most)}`}
                </text>
                {area && <path className={css.area} d={`${path}H${width}V${top + LINE}H${LEFT}z`} />}
                <path className={area ? css.kv : css.requests} d={`${path}H${width}`} />
              </g>
            );
          })}
          <text className="dim" x={LEFT} y={height - 4}>
            0 s
          </text>
          <text className="dim" x={width} y={height - 4} textAnchor="end">
            {formatDuration(end - begin)}
          </text>
        </svg>
      )}
      <p className={`${css.status} dim`} role="status">
        {range
          ? describe(payload, range)
          : 'Click an iteration to see only that one, drag to select several, double-click to open one.'}
      </p>
    </div>
  );
}
