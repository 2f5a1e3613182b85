import { scaleLinear } from 'd3-scale';
import { exactDuration, formatCount, formatDuration, formatNumber, timeUnit } from '../../base/format';
import { roundValues } from '../../base/ticks';
import { useWidth } from './useWidth';
import css from './Histogram.module.css';

export interface Outlier {
  value: number;
  event: number;
}

interface Props {
  title: string;
  /** Edges of the bins, one more than counts; ns. */
  edges: number[];
  counts: number[];
  median: number;
  p95: number;
  /** Single values far from the rest, each with its event. */
  outliers: Outlier[];
  /** Of what the durations are of. */
  color: string;
  onOutlier: (outlier: Outlier) => void;
}

const HEIGHT = 112;
const TOP = 18;
const BOTTOM = 18;

/** How the durations are spread; outliers are marked and lead to their place on the timeline. */
export function Histogram({ title, edges, counts, median, p95, outliers, color, onOutlier }: Props) {
  const { ref, width } = useWidth();
  const low = edges[0] ?? 0;
  const high = Math.max(edges[edges.length - 1] ?? 1, low + 1);
  const most = Math.max(...counts, 1);
  const x = scaleLinear([low, high], [0, width]);
  const floor = HEIGHT - BOTTOM;
  const { scale, unit } = timeUnit(high);
  const ticks = roundValues(low, high, Math.max(2, Math.floor(width / 130)), scale);
  const near = x(p95) - x(median) < 110;
  return (
    <div ref={ref} className={css.histogram} data-part="histogram" style={{ minHeight: HEIGHT }}>
      {width > 0 && (
        <svg
          width={width}
          height={HEIGHT}
          role="group"
          aria-label="Distribution of the durations"
          data-picture={`${title}, ${unit}; heights are how many`}
        >
          {counts.map((count, i) => {
            const left = x(edges[i]!);
            const size = Math.max(x(edges[i + 1]!) - left - 1, 1);
            const height = count === 0 ? 0 : Math.max(((floor - TOP) * count) / most, 1.5);
            return (
              <g key={edges[i]}>
                <rect fill={color} x={left} y={floor - height} width={size} height={height} />
                <rect className={css.hit} x={left} y={TOP} width={size + 1} height={floor - TOP}>
                  <title>{`${formatDuration(edges[i]!)} to ${formatDuration(edges[i + 1]!)}: ${formatCount(count)}`}</title>
                </rect>
              </g>
            );
          })}
          <line className="axis" x1={0} x2={width} y1={floor + 0.5} y2={floor + 0.5} />
          <Line at={x(median)} label={`median ${formatDuration(median)}`} width={width} side="left" />
          <Line
            at={x(p95)}
            label={near && x(p95) > width - 90 ? '' : `p95 ${formatDuration(p95)}`}
            width={width}
            side="right"
          />
          {outliers.map(outlier => (
            <circle
              key={outlier.event}
              className={css.outlier}
              cx={Math.min(Math.max(x(outlier.value), 4), width - 4)}
              cy={floor - 5}
              r={4}
              role="button"
              tabIndex={0}
              aria-label={`Outlier of ${formatDuration(outlier.value)}: show on the timeline`}
              onClick={() => onOutlier(outlier)}
              onKeyDown={event => (event.key === 'Enter' || event.key === ' ') && onOutlier(outlier)}
            >
              <title>{`${exactDuration(outlier.value)}: show on the timeline`}</title>
            </circle>
          ))}
          {ticks.map(tick => (
            <text
              key={tick}
              className="dim"
              x={Math.min(Math.max(x(tick), 2), width - 2)}
              y={HEIGHT - 4}
              textAnchor={x(tick) < 20 ? 'start' : x(tick) > width - 24 ? 'end' : 'middle'}
            >
              {tick === 0 ? '0' : formatNumber(tick / scale, 2)}
              {tick === ticks[ticks.length - 1] ? ` ${unit}` : ''}
            </text>
          ))}
        </svg>
      )}
    </div>
  );
}

function Line({
  at,
  label,
  width,
  side,
}: {
  at: number;
  label: string;
  width: number;
  side: 'left' | 'right';
}) {
  const room = 6.2 * label.length;
  const left = side === 'left' ? at > room : at + room > width;
  return (
    <g>
      <line className={css.markLine} x1={at} x2={at} y1={6} y2={HEIGHT - BOTTOM} />
      <text className="soft" x={at + (left ? -4 : 4)} y={12} textAnchor={left ? 'end' : 'start'}>
        {label}
      </text>
    </g>
  );
}
