// The roofline: FLOP/s over FLOPs for each byte, both logarithmic, under what the device can do; and below it what
// computes nothing, by bandwidth.
import { scaleLinear, scaleLog } from 'd3-scale';
import type { RooflinePayload, RooflineRow } from '../../api/types';
import { formatDuration, formatNumber, formatRate, formatRatio } from '../../base/format';
import { useWidth } from '../../widgets/charts/useWidth';
import { BOUND_COLORS } from '../_shared/speed';
import { ceilingsOf, decades, movesOf, pointsOf, rooflineKey } from './select';
import css from './RooflineChart.module.css';

interface Props {
  payload: RooflinePayload;
  selected: string | undefined;
  onSelect: (row: RooflineRow) => void;
}

/** Layout, px. */
const HEIGHT = 380;
const LEFT = 56;
const RIGHT = 24;
const TOP = 26;
const BOTTOM = 38;
const STRIP = 66;
/** Radius of the point with the most time, px. */
const LARGEST = 15;

export function RooflineChart({ payload, selected, onSelect }: Props) {
  const { ref, width } = useWidth();
  const points = pointsOf(payload.rows);
  const moves = movesOf(payload.rows);
  const most = Math.max(1, ...payload.rows.map(row => row.device_ns));
  const radius = (row: RooflineRow) => Math.max(3, LARGEST * Math.sqrt(row.device_ns / most));
  const dot = (row: RooflineRow, cx: number, cy: number) => (
    <Dot
      key={rooflineKey(row)}
      row={row}
      at={[cx, cy]}
      radius={radius(row)}
      chosen={rooflineKey(row) === selected}
      onSelect={onSelect}
    />
  );
  return (
    <div ref={ref} className={css.chart} data-part="roofline">
      {width > LEFT + RIGHT && points.length > 0 && (
        <Plane payload={payload} width={width}>
          {(x, y) => points.map(({ row, x: fx, y: fy }) => dot(row, x(fx), y(fy)))}
        </Plane>
      )}
      {width > LEFT + RIGHT && moves.length > 0 && (
        <Strip payload={payload} moves={moves} width={width}>
          {x => moves.map(row => dot(row, x(row.bytes_per_s!), STRIP / 2 - 4))}
        </Strip>
      )}
      {points.length + moves.length === 0 && (
        <p className="dim">No row has known memory traffic, so there is nothing to plot.</p>
      )}
    </div>
  );
}

type Place = (value: number) => number;

function Plane({
  payload,
  width,
  children,
}: {
  payload: RooflinePayload;
  width: number;
  children: (x: Place, y: Place) => React.ReactNode;
}) {
  const points = pointsOf(payload.rows);
  const ceilings = ceilingsOf(payload);
  const memory = payload.devices[0]?.memory ?? null;
  const highest = ceilings[0]?.flops;
  const ridge = memory && highest ? highest / memory : null;
  const [x0, x1] = decades([...points.map(point => point.x), ...(ridge ? [ridge, 3 * ridge] : [])]);
  const [y0, y1] = decades([...points.map(point => point.y), ...ceilings.map(({ flops }) => flops)]);
  const x = scaleLog([x0, x1], [LEFT, width - RIGHT]);
  const y = scaleLog([y0, y1], [HEIGHT - BOTTOM, TOP]);
  const powers = (low: number, high: number) =>
    Array.from({ length: Math.round(Math.log10(high / low)) + 1 }, (_, i) => low * 10 ** i);
  return (
    <svg
      width={width}
      height={HEIGHT}
      role="group"
      aria-label="Roofline"
      data-picture="Roofline: TFLOP/s over FLOPs for each byte of memory traffic, sized by device time"
    >
      {powers(x0, x1).map(tick => (
        <g key={tick}>
          <line className={css.grid} x1={x(tick)} x2={x(tick)} y1={TOP} y2={HEIGHT - BOTTOM} />
          <text className="dim" x={x(tick)} y={HEIGHT - BOTTOM + 15} textAnchor="middle">
            {formatNumber(tick, 1)}
          </text>
        </g>
      ))}
      {powers(y0, y1).map(tick => (
        <g key={tick}>
          <line className={css.grid} x1={LEFT} x2={width - RIGHT} y1={y(tick)} y2={y(tick)} />
          <text className="dim" x={LEFT - 6} y={y(tick) + 4} textAnchor="end">
            {formatNumber(tick / 1e12, 1)}
          </text>
        </g>
      ))}
      <text className="soft" x={width - RIGHT} y={HEIGHT - 6} textAnchor="end">
        FLOPs for each byte of memory traffic
      </text>
      <text className="soft" x={4} y={12}>
        TFLOP/s
      </text>
      {ceilings.map(({ title, flops }) => (
        <line
          key={title}
          className={css.ceiling}
          x1={memory ? x(Math.max(flops / memory, x0)) : LEFT}
          x2={width - RIGHT}
          y1={y(flops)}
          y2={y(flops)}
        />
      ))}
      {memory && highest && <Slope memory={memory} highest={highest} low={[x0, y0]} place={[x, y]} />}
      {children(x, y)}
      {/* Above the points: those at the roof would cover its name. */}
      {ceilings.map(({ title, flops }, i) => (
        <text
          key={title}
          data-part="ceiling"
          className={`soft halo ${css.title}`}
          x={width - RIGHT}
          y={y(flops) + (i === 0 ? -5 : 13)}
          textAnchor="end"
        >
          {`${title} ${formatNumber(flops / 1e12)}`}
        </text>
      ))}
    </svg>
  );
}

/** What the memory allows: its bandwidth times the intensity, up to the highest ceiling. */
function Slope({
  memory,
  highest,
  low: [x0, y0],
  place: [x, y],
}: {
  memory: number;
  highest: number;
  low: [number, number];
  place: [Place, Place];
}) {
  const from = Math.max(x0, y0 / memory);
  const to = highest / memory;
  const [ax, ay, bx, by] = [x(from), y(from * memory), x(to), y(to * memory)];
  const tilt = (Math.atan2(by - ay, bx - ax) * 180) / Math.PI;
  const [mx, my] = [(ax + bx) / 2, (ay + by) / 2];
  return (
    <g data-part="ceiling">
      <line className={css.slope} x1={ax} y1={ay} x2={bx} y2={by} />
      <text className="soft" x={mx} y={my - 6} textAnchor="middle" transform={`rotate(${tilt} ${mx} ${my})`}>
        {`memory ${formatNumber(memory / 1e9)} GB/s`}
      </text>
    </g>
  );
}

function Strip({
  payload,
  moves,
  width,
  children,
}: {
  payload: RooflinePayload;
  moves: readonly RooflineRow[];
  width: number;
  children: (x: Place) => React.ReactNode;
}) {
  const memory = payload.devices[0]?.memory ?? null;
  const most = Math.max(memory ?? 0, ...moves.map(row => row.bytes_per_s!));
  const x = scaleLinear([0, most], [LEFT, width - RIGHT - LARGEST]);
  const floor = STRIP / 2 - 4;
  return (
    <>
      <h3>
        No known FLOPs <span className="dim">placed by bandwidth</span>
      </h3>
      <svg
        width={width}
        height={STRIP}
        role="group"
        aria-label="Operators by bandwidth"
        data-picture="Without known FLOPs, by bandwidth: GB/s"
      >
        <line className="axis" x1={LEFT} x2={width - RIGHT} y1={floor} y2={floor} />
        {x.ticks(4).map(tick => (
          <text key={tick} className="dim" x={x(tick)} y={STRIP - 6} textAnchor="middle">
            {`${formatNumber(tick / 1e9)}${tick === 0 ? ' GB/s' : ''}`}
          </text>
        ))}
        {memory && <line className={css.slope} x1={x(memory)} x2={x(memory)} y1={4} y2={2 * floor - 4} />}
        {children(x)}
      </svg>
    </>
  );
}

function Dot({
  row,
  at: [cx, cy],
  radius,
  chosen,
  onSelect,
}: {
  row: RooflineRow;
  at: [number, number];
  radius: number;
  chosen: boolean;
  onSelect: (row: RooflineRow) => void;
}) {
  const speed = row.flops_per_s === null ? '' : `${formatNumber(row.flops_per_s / 1e12)} TFLOP/s, `;
  const moved = row.bytes_per_s === null ? '' : `${formatRate(row.bytes_per_s)}, `;
  const roof = row.efficiency === null ? '' : `${formatRatio(row.efficiency)} of the roofline, `;
  const text = `${row.short_name}: ${formatDuration(row.device_ns)}, ${speed}${moved}${roof}bound: ${row.bound}`;
  return (
    <circle
      className={chosen ? css.chosen : css.dot}
      data-part="point"
      cx={cx}
      cy={cy}
      r={radius}
      fill={BOUND_COLORS[row.bound]}
      data-legend={`bound: ${row.bound}`}
      role="button"
      tabIndex={0}
      aria-label={text}
      aria-pressed={chosen}
      onClick={() => onSelect(row)}
      onKeyDown={event => (event.key === 'Enter' || event.key === ' ') && onSelect(row)}
    >
      <title>{text}</title>
    </circle>
  );
}
