import { scaleLinear } from 'd3-scale';
import { exactDuration, formatCount, formatDuration, formatNumber, timeUnit } from '../../base/format';
import { roundTickValues } from '../../base/ticks';
import { useWidth } from './useWidth';
import css from './Histogram.module.css';

interface Outlier {
  value: number;
  event: number;
}

interface Props {
  title: string;
  /** Edges of the bins in ns; one more than `counts`. */
  edges: number[];
  counts: number[];
  median: number;
  p95: number;
  /** Values far from the rest, each with its event. */
  outliers: Outlier[];
  /** The color of the category of the events. */
  color: string;
  onOutlier: (outlier: Outlier) => void;
}

/** Layout, px. */
const HEIGHT = 112;
const TOP_MARGIN = 18;
const BOTTOM_MARGIN = 18;
/** Average width of a letter of a label, px. */
const LETTER_WIDTH = 6.2;

/** The distribution of durations; outliers are circles that open their event on the timeline. */
export function Histogram({ title, edges, counts, median, p95, outliers, color, onOutlier }: Props) {
  const { ref, width } = useWidth();
  const low = edges[0] ?? 0;
  const high = Math.max(edges[edges.length - 1] ?? 1, low + 1);
  const maxCount = Math.max(...counts, 1);
  const x = scaleLinear([low, high], [0, width]);
  const floor = HEIGHT - BOTTOM_MARGIN;
  const { scale, unit } = timeUnit(high);
  const ticks = roundTickValues(low, high, Math.max(2, Math.floor(width / 130)), scale);
  const labelsOverlap = x(p95) - x(median) < 110;
  return (
    <div ref={ref} className={css.histogram} data-part="histogram" style={{ minHeight: HEIGHT }}>
      {width > 0 && (
        <svg
          width={width}
          height={HEIGHT}
          role="group"
          aria-label="Distribution of the durations"
          data-picture={`${title}, ${unit}; counts per bin`}
        >
          {counts.map((count, i) => {
            const left = x(edges[i]!);
            const size = Math.max(x(edges[i + 1]!) - left - 1, 1);
            const height = count === 0 ? 0 : Math.max(((floor - TOP_MARGIN) * count) / maxCount, 1.5);
            return (
              <g key={edges[i]}>
                <rect fill={color} x={left} y={floor - height} width={size} height={height} />
                <rect
                  className={css.hit}
                  x={left}
                  y={TOP_MARGIN}
                  width={size + 1}
                  height={floor - TOP_MARGIN}
                >
                  <title>{`${formatDuration(edges[i]!)} to ${formatDuration(edges[i + 1]!)}: ${formatCount(count)}`}</title>
                </rect>
              </g>
            );
          })}
          <line className="axis" x1={0} x2={width} y1={floor + 0.5} y2={floor + 0.5} />
          <MarkerLine x={x(median)} label={`median ${formatDuration(median)}`} width={width} side="left" />
          <MarkerLine
            x={x(p95)}
            label={labelsOverlap && x(p95) > width - 90 ? '' : `p95 ${formatDuration(p95)}`}
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
              aria-label={`Outlier, ${formatDuration(outlier.value)}: show on the timeline`}
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

/** A vertical line with a label on the preferred side, if the label fits there. */
function MarkerLine({
  x,
  label,
  width,
  side,
}: {
  x: number;
  label: string;
  width: number;
  side: 'left' | 'right';
}) {
  const labelWidth = LETTER_WIDTH * label.length;
  const labelOnLeft = side === 'left' ? x > labelWidth : x + labelWidth > width;
  return (
    <g>
      <line className={css.markLine} x1={x} x2={x} y1={6} y2={HEIGHT - BOTTOM_MARGIN} />
      <text className="soft" x={x + (labelOnLeft ? -4 : 4)} y={12} textAnchor={labelOnLeft ? 'end' : 'start'}>
        {label}
      </text>
    </g>
  );
}
