interface Props {
  ticks: readonly number[];
  y: (value: number) => number;
  left: number;
  right: number;
  label: (value: number) => string;
}

/** Horizontal lines across a chart, each with its value on the left. */
export function GridLines({ ticks, y, left, right, label }: Props) {
  return ticks.map(tick => (
    <g key={tick}>
      <line x1={left} x2={right} y1={y(tick)} y2={y(tick)} className={tick === 0 ? 'axis' : 'grid'} />
      <text x={left - 8} y={y(tick) + 4} textAnchor="end" className="dim">
        {tick === 0 ? '0' : label(tick)}
      </text>
    </g>
  ));
}
