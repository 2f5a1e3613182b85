// From the step of the base, part by part, to that of the candidate: where the change comes from.
import { scaleLinear } from 'd3-scale';
import type { ReactNode } from 'react';
import type { DiffWaterfall } from '../../api/types';
import { categoryColor, CATEGORY_TITLE, type Category } from '../../base/category';
import { formatDuration, formatSignedDuration, timeUnit } from '../../base/format';
import { axisFormat, roundTickValues } from '../../base/ticks';
import { GridLines } from '../../widgets/charts/GridLines';
import { useWidth } from '../../widgets/charts/useWidth';
import { useStepWords } from '../../state/steps';
import { intervalText, verdictText } from './Verdict';
import css from './Waterfall.module.css';

/** Layout, px. */
const HEIGHT = 280;
const TOP = 26;
const BOTTOM = 42;
const LEFT = 44;
/** Width of the longest verdict, px. */
const VERDICT_WIDTH = 80;

const PHASE: Record<string, [string, string]> = {
  data: ['Data', 'var(--c-dataloader)'],
  forward: ['Forward', 'var(--c-cpu_exec)'],
  backward: ['Backward', 'var(--c-memcpy)'],
  optimizer: ['Optimizer', 'var(--c-runtime)'],
  other: ['Other host', 'var(--c-other)'],
  device: ['Device', 'var(--c-communication)'],
};

function titleAndColor(by: DiffWaterfall['by'], name: string): [string, string] {
  return by === 'category'
    ? [CATEGORY_TITLE[name as Category] ?? name, categoryColor(name as Category)]
    : (PHASE[name] ?? [name, 'var(--c-other)']);
}

interface Props {
  waterfall: DiffWaterfall;
  /** The sides, for the title of the saved picture. */
  compared: string;
  /** Whether the table shows the rows that make up a bar already. */
  isShown: (name: string) => boolean;
  /** Open the rows that make up a bar. */
  onBar: (name: string) => void;
  /** Open the recording of a side. */
  onSide: (side: 'base' | 'candidate') => void;
}

export function Waterfall({ waterfall, compared, isShown, onBar, onSide }: Props) {
  const { ref, width } = useWidth();
  const say = useStepWords();
  const { base_ns: base, candidate_ns: candidate, by } = waterfall;
  const bars = waterfall.bars.filter(
    bar => bar.delta_ns !== 0 || (bar.base_ns ?? 0) + (bar.candidate_ns ?? 0) > 0,
  );
  const ends = bars.map(bar => base + bar.delta_accumulated_ns);
  const heights = [base, candidate, ...ends];
  const [lowest, highest] = [Math.min(...heights), Math.max(...heights)];
  // If the parts are small compared with the steps, the axis is broken and starts just below them.
  const broken = highest - lowest < 0.5 * highest;
  const low = broken ? Math.max(lowest - (highest - lowest) * 0.6 - 0.01 * highest, 0) : 0;
  const high = highest + (highest - low) * 0.04 || 1;
  const slots = bars.length + 2;
  const slot = Math.max(width - LEFT, 1) / slots;
  const column = Math.min(slot * 0.62, 64);
  const floor = HEIGHT - BOTTOM;
  const y = scaleLinear([low, high], [floor, TOP]);
  const x = (i: number) => LEFT + slot * i + (slot - column) / 2;
  const { scale, unit } = timeUnit(highest);
  const label = axisFormat(low / scale, high / scale, 5);
  const roomy = slot > 64;
  return (
    <div ref={ref} style={{ minHeight: HEIGHT }}>
      {width > 0 && (
        <svg
          width={width}
          height={HEIGHT}
          className={css.waterfall}
          data-part="waterfall"
          role="group"
          aria-label="Where the change comes from"
          data-picture={`${say(`Where the change comes from, ${unit} per step`)}: ${compared}`}
        >
          <text x={LEFT - 8} y={12} textAnchor="end" className="dim">
            {unit}
          </text>
          <GridLines
            ticks={roundTickValues(low, high, 5, scale)}
            y={y}
            left={LEFT}
            right={width}
            label={tick => label(tick / scale)}
          />
          <line x1={LEFT} x2={width} y1={floor + 0.5} y2={floor + 0.5} className="axis" />
          <StepColumn
            x={x(0)}
            width={column}
            top={y(base)}
            floor={floor}
            broken={broken}
            value={base}
            title="Base"
            onOpen={() => onSide('base')}
          />
          {bars.map((bar, i) => {
            const from = base + bar.delta_accumulated_ns - bar.delta_ns;
            const to = base + bar.delta_accumulated_ns;
            const [title, color] = titleAndColor(by, bar.name);
            const top = Math.min(y(from), y(to));
            const height = Math.max(Math.abs(y(from) - y(to)), 1.5);
            // The label goes below a falling bar, unless it would overlap the column names.
            const below = bar.delta_ns <= 0 && top + height + 13 < floor - 2;
            const significant = bar.verdict === 'slower' || bar.verdict === 'faster';
            return (
              <ColumnLink
                key={bar.name}
                className={significant || bar.verdict === 'unknown' ? '' : css.noise}
                title={`${title}: ${formatSignedDuration(bar.delta_ns)}.${intervalText(bar, say)}`}
                current={isShown(bar.name)}
                onOpen={() => onBar(bar.name)}
              >
                <rect
                  x={x(i + 1)}
                  y={TOP - 18}
                  width={column}
                  height={floor - TOP + 36}
                  className={css.hit}
                />
                <line x1={x(i) + column} x2={x(i + 1)} y1={y(from)} y2={y(from)} className="leader" />
                <rect
                  x={x(i + 1)}
                  y={top}
                  width={column}
                  height={height}
                  fill={color}
                  data-legend={`${title} ${formatSignedDuration(bar.delta_ns)}`}
                />
                <text
                  x={x(i + 1) + column / 2}
                  y={below ? top + height + 13 : top - 6}
                  textAnchor="middle"
                  className={significant ? 'strong' : 'dim'}
                >
                  {roomy || significant ? formatSignedDuration(bar.delta_ns) : ''}
                </text>
                <text
                  x={x(i + 1) + column / 2}
                  y={floor + 16}
                  textAnchor="middle"
                  className={significant ? 'strong' : 'soft'}
                >
                  {roomy ? title : title.slice(0, Math.max(Math.floor(slot / 7), 2))}
                </text>
                {slot > VERDICT_WIDTH && (
                  <text x={x(i + 1) + column / 2} y={floor + 31} textAnchor="middle" className="dim">
                    {verdictText(bar.verdict)}
                  </text>
                )}
              </ColumnLink>
            );
          })}
          <StepColumn
            x={x(slots - 1)}
            width={column}
            top={y(candidate)}
            floor={floor}
            broken={broken}
            value={candidate}
            title="Candidate"
            onOpen={() => onSide('candidate')}
          />
        </svg>
      )}
    </div>
  );
}

interface ColumnLinkProps {
  title: string;
  className?: string | undefined;
  /** What it leads to is on the page. */
  current?: boolean;
  onOpen: () => void;
  children: ReactNode;
}

/** A column that is a link. Its title names it, because the drawn label may be cut. */
function ColumnLink({ title, className = '', current = false, onOpen, children }: ColumnLinkProps) {
  return (
    <g
      role="link"
      tabIndex={0}
      aria-current={current || undefined}
      className={`${css.opens} ${className}`}
      onClick={onOpen}
      onKeyDown={event => event.key === 'Enter' && onOpen()}
    >
      <title>{title}</title>
      {children}
    </g>
  );
}

interface StepColumnProps {
  x: number;
  width: number;
  top: number;
  floor: number;
  broken: boolean;
  value: number;
  title: string;
  onOpen: () => void;
}

/** The step of one side as a column; a wave at its foot shows that the axis is broken. */
function StepColumn({ x, width, top, floor, broken, value, title, onOpen }: StepColumnProps) {
  const wave = Array.from(
    { length: 5 },
    (_, i) => `${x + (width * i) / 4},${floor - 10 + (i % 2 ? -4 : 0)}`,
  ).join(' ');
  return (
    <ColumnLink title={`${title}: ${formatDuration(value)}`} onOpen={onOpen}>
      <rect x={x} y={top} width={width} height={Math.max(floor - top, 1)} className={css.stepColumn} />
      {broken && <polyline points={wave} className={css.wave} />}
      <text x={x + width / 2} y={top - 6} textAnchor="middle" className="strong">
        {formatDuration(value)}
      </text>
      <text x={x + width / 2} y={floor + 16} textAnchor="middle" className="strong">
        {title}
      </text>
    </ColumnLink>
  );
}
