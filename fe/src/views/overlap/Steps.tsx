// Metrics over the steps: a row each, all on one axis of steps.
import { scaleLinear } from 'd3-scale';
import { useState } from 'react';
import type { OverlapPayload } from '../../api/types';
import { plural } from '../../base/format';
import { useWidth } from '../../widgets/charts/useWidth';
import { formatMetric } from './format';
import css from './Steps.module.css';

type Series = OverlapPayload['series'][number];

interface Props {
  payload: OverlapPayload;
  /** The iteration with the most exposed communication of a column. */
  onOpen: (link: string) => void;
}

/** Layout, px. */
const ROW_HEIGHT = 58;
const PADDING = 8;
const TITLE_WIDTH = 170;
const RANGE_WIDTH = 76;
const AXIS_HEIGHT = 20;

const COLORS: Partial<Record<Series['name'], string>> = {
  overlap_ratio: '--c-late',
  exposed: '--c-communication',
  compute: '--c-kernel',
  loss: '--c-runtime',
  lr: '--c-runtime',
  grad_norm: '--c-runtime',
  memory: '--c-mem',
};

export function Steps({ payload, onOpen }: Props) {
  const { ref, width } = useWidth();
  const [column, setColumn] = useState<number | null>(null);
  const { series, steps } = payload;
  const right = Math.max(width - RANGE_WIDTH, TITLE_WIDTH + 1);
  const x = scaleLinear([0, Math.max(steps.length - 1, 1)], [TITLE_WIDTH + 4, right - 4]);
  const height = series.length * ROW_HEIGHT + AXIS_HEIGHT;
  const columnAt = (event: React.MouseEvent<SVGSVGElement>) => {
    const place = event.clientX - event.currentTarget.getBoundingClientRect().left;
    const found = Math.round(x.invert(place));
    return place < TITLE_WIDTH || place > right ? null : Math.min(Math.max(found, 0), steps.length - 1);
  };
  const open = (at: number | null) => {
    const link = at === null ? null : worstLink(payload, at);
    if (link) {
      onOpen(link);
    }
  };
  return (
    <div ref={ref} className={css.steps} style={{ minHeight: height }} data-part="overlap-steps">
      {width > 0 && (
        <svg
          width={width}
          height={height}
          role="slider"
          tabIndex={0}
          aria-label={`${series.map(each => each.title).join(', ')} over ${plural(steps.length, 'step')}`}
          aria-valuemin={0}
          aria-valuemax={steps.length - 1}
          aria-valuenow={column ?? 0}
          aria-valuetext={column === null ? 'no step chosen' : readOut(payload, column)}
          data-picture="Metrics over the steps"
          onMouseMove={event => setColumn(columnAt(event))}
          onMouseLeave={() => setColumn(null)}
          onClick={event => open(columnAt(event))}
          onKeyDown={event => {
            const change = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
            if (change) {
              setColumn(Math.min(Math.max((column ?? -1) + change, 0), steps.length - 1));
            } else if (event.key === 'Enter') {
              open(column);
            }
          }}
        >
          {series.map((each, row) => (
            <Row key={each.name} series={each} top={row * ROW_HEIGHT} x={x} right={right} column={column} />
          ))}
          {column !== null && (
            <line className={css.cursor} x1={x(column)} x2={x(column)} y1={0} y2={height - AXIS_HEIGHT} />
          )}
          <AxisLabels steps={steps} x={x} y={height - 4} column={column} />
        </svg>
      )}
    </div>
  );
}

/** The step of a column and the values at it, as text. */
const readOut = ({ steps, series }: OverlapPayload, column: number): string =>
  `step ${steps[column]}: ${series.map(each => `${each.title} ${formatMetric(each.values[column] ?? null, each.unit)}`).join(', ')}`;

interface RowProps {
  series: Series;
  top: number;
  x: (column: number) => number;
  right: number;
  column: number | null;
}

/** One metric: its title and value on the left, its line, and its range on the right. */
function Row({ series, top, x, right, column }: RowProps) {
  const known = series.values.filter(value => value !== null);
  const low = Math.min(...known);
  const high = Math.max(...known);
  const floor = top + ROW_HEIGHT - PADDING;
  const y = scaleLinear([low, high > low ? high : low + 1], [floor, top + PADDING]);
  const color = `var(${COLORS[series.name] ?? '--c-other'})`;
  const shown = column === null ? null : series.values[column];
  return (
    <g>
      <line className="grid" x1={0} x2={right + RANGE_WIDTH} y1={top + ROW_HEIGHT} y2={top + ROW_HEIGHT} />
      <text className={css.title} x={0} y={top + 24}>
        {series.title}
      </text>
      <text className="dim" x={0} y={top + 42}>
        {column === null
          ? `mean ${formatMetric(mean(known), series.unit)}`
          : formatMetric(shown ?? null, series.unit)}
      </text>
      {lines(series.values).map(line => (
        <path
          key={line[0]}
          fill="none"
          stroke={color}
          strokeWidth={1.5}
          d={line.map((at, i) => `${i ? 'L' : 'M'}${x(at)},${y(series.values[at]!)}`).join('')}
        />
      ))}
      {lines(series.values)
        .filter(line => line.length === 1)
        .map(([at]) => (
          <circle key={at} cx={x(at!)} cy={y(series.values[at!]!)} r={2} fill={color} />
        ))}
      {column !== null && shown !== null && shown !== undefined && (
        <circle cx={x(column)} cy={y(shown)} r={3} fill={color} />
      )}
      <text className="dim" x={right + 8} y={top + PADDING + 8}>
        {formatMetric(high, series.unit)}
      </text>
      {high > low && (
        <text className="dim" x={right + 8} y={floor}>
          {formatMetric(low, series.unit)}
        </text>
      )}
    </g>
  );
}

/** The first and the last step, and the one under the pointer. */
function AxisLabels({
  steps,
  x,
  y,
  column,
}: {
  steps: readonly string[];
  x: (column: number) => number;
  y: number;
  column: number | null;
}) {
  const last = steps.length - 1;
  const ends = column === null ? (last > 0 ? [0, last] : [0]) : [column];
  return ends.map(at => (
    <text
      key={at}
      className="dim"
      x={x(at)}
      y={y}
      textAnchor={at === 0 ? 'start' : at === last ? 'end' : 'middle'}
    >
      {`step ${steps[at]}`}
    </text>
  ));
}

/** Return the columns of each unbroken line: a step without a value interrupts it. */
function lines(values: readonly (number | null)[]): number[][] {
  const found: number[][] = [];
  values.forEach((value, at) => {
    if (value === null) {
      return;
    }
    if (at > 0 && values[at - 1] !== null) {
      found.at(-1)!.push(at);
    } else {
      found.push([at]);
    }
  });
  return found;
}

const mean = (values: readonly number[]): number =>
  values.reduce((sum, each) => sum + each, 0) / values.length;

/** Return the link of the rank with the most exposed communication in a column. */
function worstLink({ maps, links }: OverlapPayload, column: number): string | null {
  const exposed = maps.find(map => map.name === 'exposed')?.values ?? [];
  const values = exposed.map(row => row[column] ?? -1);
  const worst = values.indexOf(Math.max(...values));
  return links[worst]?.[column] ?? null;
}
