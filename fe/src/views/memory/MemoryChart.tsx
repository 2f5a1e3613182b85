// Memory over time: allocated and reserved as upright steps, the steps below; a click asks what lives, a drag takes a range.
import { scaleLinear } from 'd3-scale';
import { useMemo, useRef, useState, type KeyboardEvent, type PointerEvent } from 'react';
import type { MemoryCurve, MemoryDevice, MemoryPayload } from '../../api/types';
import { formatBytes, formatDuration } from '../../base/format';
import { formatOffset, roundStep, ticks } from '../../base/ticks';
import { GridLines } from '../../widgets/charts/GridLines';
import { useWidth } from '../../widgets/charts/useWidth';
import { useStepWords } from '../../state/steps';
import { bounds, byteTicks, decode, outline, surface, valueAt } from './curve';
import type { TimeRange } from './state';
import css from './MemoryChart.module.css';

interface Props {
  curve: MemoryCurve;
  device: MemoryDevice;
  steps: MemoryPayload['steps'];
  /** The instant whose live set is shown. */
  at: number | null;
  range: TimeRange | null;
  onAt: (at: number) => void;
  onRange: (range: TimeRange | null) => void;
}

/** Layout, px. */
const HEIGHT = 300;
const LEFT = 64;
const RIGHT = 8;
const TOP = 24;
const BOTTOM = 40;
/** A shorter movement of a pressed pointer is a click, px. */
const MIN_DRAG_PX = 4;
/** The capacity is drawn where the curve comes near it; else the curve would be a flat line below it. */
const CAPACITY_SHOWN_RATIO = 2;

export function MemoryChart({ curve, device, steps, at, range, onAt, onRange }: Props) {
  const { ref, width } = useWidth();
  const svg = useRef<SVGSVGElement>(null);
  const drag = useRef<{ x: number; moved: boolean } | null>(null);
  const [draft, setDraft] = useState<TimeRange | null>(null);
  const [pointed, setPointed] = useState<number | null>(null);
  const data = useMemo(() => decode(curve), [curve]);
  const reach = useMemo(() => bounds(data), [data]);
  const capacity =
    device.capacity_bytes !== null && device.capacity_bytes < CAPACITY_SHOWN_RATIO * reach.high
      ? device.capacity_bytes
      : null;
  const high = Math.max(reach.high, capacity ?? 0) * 1.06 || 1;
  const low = reach.low * 1.06;
  const inner = Math.max(width - LEFT - RIGHT, 1);
  const floor = HEIGHT - BOTTOM;
  const span = Math.max(data.end - data.begin, 1);
  const x = scaleLinear([data.begin, data.begin + span], [LEFT, LEFT + inner]);
  const y = scaleLinear([low, high], [floor, TOP]);
  const timeAt = (px: number) => Math.round(x.invert(Math.min(Math.max(px, LEFT), LEFT + inner)));
  const paths = useMemo(
    () =>
      width === 0
        ? null
        : {
            fill: surface(data, data.allocated, x, y),
            allocated: outline(data, data.allocated, x, y),
            // The CPU's allocator reserves nothing: a line along the axis would say less than none.
            reserved: device.peak_reserved?.bytes ? outline(data, data.reserved, x, y) : '',
          },
    // oxlint-disable-next-line react-hooks/exhaustive-deps -- the scales follow from these
    [data, width, high, low, device],
  );
  const placeOf = (event: PointerEvent | React.MouseEvent) =>
    event.clientX - svg.current!.getBoundingClientRect().left;
  const onPointerDown = (event: PointerEvent<SVGSVGElement>) => {
    if (event.button === 0) {
      event.currentTarget.setPointerCapture(event.pointerId);
      drag.current = { x: placeOf(event), moved: false };
    }
  };
  const onPointerMove = (event: PointerEvent) => {
    const px = placeOf(event);
    const start = drag.current;
    if (start && (start.moved || Math.abs(px - start.x) > MIN_DRAG_PX)) {
      start.moved = true;
      setPointed(null);
      setDraft(ordered(timeAt(start.x), timeAt(px)));
    } else if (!start) {
      setPointed(px >= LEFT && px <= width - RIGHT ? timeAt(px) : null);
    }
  };
  const onPointerUp = (event: PointerEvent) => {
    const start = drag.current;
    drag.current = null;
    setDraft(null);
    if (start?.moved) {
      onRange(ordered(timeAt(start.x), timeAt(placeOf(event))));
    } else if (start) {
      onAt(timeAt(placeOf(event)));
    }
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20 }[event.key];
    if (by !== undefined) {
      event.preventDefault();
      const from = at ?? device.peak_allocated?.time_ns ?? data.begin;
      onAt(Math.round(Math.min(Math.max(from + (by * span) / 200, data.begin), data.end)));
    } else if (event.key === 'Escape' && range) {
      onRange(null);
    }
  };
  const shown = draft ?? range;
  const inWindow = (ns: number) => ns >= data.begin && ns <= data.end;
  const peak = curve.peak_allocated;
  const instant = at ?? peak?.time_ns ?? null;
  return (
    <div ref={ref} className={css.curve} data-part="memory-curve" style={{ height: HEIGHT }}>
      {paths && (
        // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- a slider over time
        <svg
          ref={svg}
          width={width}
          height={HEIGHT}
          role="slider"
          aria-label={`Instant in the memory of ${device.name}`}
          data-picture={`Memory of ${device.name}${device.hardware ? ` (${device.hardware})` : ''} over time`}
          aria-valuemin={data.begin}
          aria-valuemax={data.end}
          aria-valuenow={instant ?? data.begin}
          aria-valuetext={instant === null ? 'none' : formatOffset(instant, span / 1000)}
          tabIndex={0}
          onPointerDown={onPointerDown}
          onPointerMove={onPointerMove}
          onPointerUp={onPointerUp}
          onPointerLeave={() => setPointed(null)}
          onContextMenu={event => {
            event.preventDefault();
            onRange(null);
          }}
          onKeyDown={onKeyDown}
        >
          <GridLines
            ticks={byteTicks(low, high, 6)}
            y={y}
            left={LEFT}
            right={width - RIGHT}
            label={formatBytes}
          />
          <path d={paths.fill} className={css.area} />
          {paths.reserved && (
            <path d={paths.reserved} className={css.reserved} data-legend="reserved by the allocator" />
          )}
          <path d={paths.allocated} className={css.allocated} data-part="allocated" data-legend="allocated" />
          {capacity !== null && (
            <g>
              <line x1={LEFT} x2={width - RIGHT} y1={y(capacity)} y2={y(capacity)} className={css.capacity} />
              <text x={width - RIGHT} y={y(capacity) - 5} textAnchor="end" className="soft halo">
                capacity {formatBytes(capacity)}
              </text>
            </g>
          )}
          {ticks({ begin: data.begin, end: data.end }, inner, 0).map(tick => (
            <text
              key={tick.time}
              x={Math.min(x(tick.time), width - 2)}
              y={floor + 16}
              textAnchor={x(tick.time) > width - 28 ? 'end' : 'middle'}
              className="dim"
            >
              {tick.label}
            </text>
          ))}
          <Steps steps={steps} x={x} begin={data.begin} end={data.end} y={floor + 22} />
          {shown && (
            <g pointerEvents="none">
              <rect
                x={x(Math.max(shown.begin, data.begin))}
                width={Math.max(x(Math.min(shown.end, data.end)) - x(Math.max(shown.begin, data.begin)), 1)}
                y={TOP}
                height={floor - TOP}
                className={css.range}
              />
              <text
                x={(x(shown.begin) + x(shown.end)) / 2}
                y={TOP - 8}
                textAnchor="middle"
                className={css.rangeLabel}
              >
                {formatDuration(shown.end - shown.begin)}
              </text>
            </g>
          )}
          {peak && inWindow(peak.time_ns) && (at === null || Math.abs(x(at) - x(peak.time_ns)) > 150) && (
            <g pointerEvents="none">
              <circle cx={x(peak.time_ns)} cy={y(peak.bytes)} r={3.5} className={css.peak} />
              <text
                x={x(peak.time_ns) + (x(peak.time_ns) > width - 130 ? -8 : 8)}
                y={Math.max(y(peak.bytes) - 6, 12)}
                textAnchor={x(peak.time_ns) > width - 130 ? 'end' : 'start'}
                className="strong halo"
              >
                peak {formatBytes(peak.bytes)}
              </text>
            </g>
          )}
          {at !== null && inWindow(at) && (
            <Instant
              x={x(at)}
              y={y}
              value={valueAt(data, data.allocated, at)}
              text={formatOffset(at, roundStep(data, inner, 1))}
              width={width}
            />
          )}
          {pointed !== null && (
            <Instant
              x={x(pointed)}
              y={y}
              value={valueAt(data, data.allocated, pointed)}
              text={formatOffset(pointed, roundStep(data, inner, 1))}
              width={width}
              faint
            />
          )}
        </svg>
      )}
    </div>
  );
}

const ordered = (a: number, b: number): TimeRange => ({
  begin: Math.min(a, b),
  end: Math.max(a, b, Math.min(a, b) + 1),
});

interface InstantProps {
  x: number;
  y: (bytes: number) => number;
  value: number;
  text: string;
  width: number;
  faint?: boolean;
}

function Instant({ x, y, value, text, width, faint = false }: InstantProps) {
  const left = x > width - 120;
  const known = !Number.isNaN(value);
  return (
    <g pointerEvents="none" className={faint ? `${css.instant} ${css.faint}` : css.instant}>
      <line x1={x} x2={x} y1={TOP} y2={HEIGHT - BOTTOM} />
      {known && <circle cx={x} cy={y(value)} r={4} />}
      <text x={x + (left ? -7 : 7)} y={TOP + 10} textAnchor={left ? 'end' : 'start'} className="strong halo">
        {known ? formatBytes(value) : 'nothing recorded yet'}
      </text>
      <text x={x + (left ? -7 : 7)} y={TOP + 24} textAnchor={left ? 'end' : 'start'} className="soft halo">
        at {text}
      </text>
    </g>
  );
}

interface StepsProps {
  steps: MemoryPayload['steps'];
  x: (ns: number) => number;
  begin: number;
  end: number;
  y: number;
}

/** The steps as brackets under the axis, with their names where there is room. */
function Steps({ steps, x, begin, end, y }: StepsProps) {
  const say = useStepWords();
  return (
    <g className={css.steps}>
      {steps
        .filter(step => step.end_ns > begin && step.start_ns < end)
        .map(step => {
          const left = x(Math.max(step.start_ns, begin));
          const right = x(Math.min(step.end_ns, end));
          const label = `${say('step')} ${step.name}`;
          return (
            <g key={step.name}>
              <rect x={left + 0.5} y={y} width={Math.max(right - left - 1, 1)} height={3} />
              {right - left > 6.5 * label.length && (
                <text x={(left + right) / 2} y={y + 15} textAnchor="middle" className="dim">
                  {label}
                </text>
              )}
            </g>
          );
        })}
    </g>
  );
}
