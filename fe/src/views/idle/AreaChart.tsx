// Area chart of a quantity over the time of the trace.
import { useWidth } from '../../widgets/charts/useWidth';
import { formatDuration } from '../../base/format';

/** Layout, px. */
const HEIGHT = 150;
const LEFT = 56;
const BOTTOM = 18;

interface Props {
  /** One value for each bucket between two neighboring edges. */
  values: readonly number[];
  edges: readonly number[];
  color: string;
  format: (value: number) => string;
  label: string;
}

export function AreaChart({ values, edges, color, format, label }: Props) {
  const { ref, width } = useWidth();
  const max = Math.max(...values, 1);
  const [begin, end] = [edges[0] ?? 0, edges.at(-1) ?? 1];
  const toX = (ns: number) => LEFT + ((ns - begin) / Math.max(end - begin, 1)) * (width - LEFT);
  const toY = (value: number) => HEIGHT - BOTTOM - (value / max) * (HEIGHT - BOTTOM - 12);
  const line = values
    .map((value, i) => `L${toX(edges[i]!)} ${toY(value)}L${toX(edges[i + 1]!)} ${toY(value)}`)
    .join('');
  return (
    <div ref={ref} style={{ minHeight: HEIGHT }}>
      {width > 0 && values.length > 0 && (
        <svg width={width} height={HEIGHT} role="img" aria-label={label} data-picture={label}>
          {[0, max / 2, max].map(value => (
            <g key={value}>
              <line x1={LEFT} x2={width} y1={toY(value)} y2={toY(value)} className="grid" />
              <text x={LEFT - 6} y={toY(value) + 4} textAnchor="end" className="dim">
                {format(value)}
              </text>
            </g>
          ))}
          <path
            d={`M${LEFT} ${HEIGHT - BOTTOM}${line}L${width} ${HEIGHT - BOTTOM}z`}
            style={{ fill: `color-mix(in srgb, ${color} 30%, transparent)`, stroke: color }}
          />
          <text x={LEFT} y={HEIGHT - 4} className="dim">
            {formatDuration(begin)}
          </text>
          <text x={width} y={HEIGHT - 4} textAnchor="end" className="dim">
            {formatDuration(end)}
          </text>
        </svg>
      )}
    </div>
  );
}
