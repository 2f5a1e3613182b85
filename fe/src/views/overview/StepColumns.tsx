import { scaleLinear } from 'd3-scale';
import { useMemo, useState } from 'react';
import { categoryColor } from '../../base/category';
import { exactDuration, formatDuration, formatNumber, timeUnit } from '../../base/format';
import { GridLines } from '../../widgets/charts/GridLines';
import { useWidth } from '../../widgets/charts/useWidth';
import { useStepWords } from '../../state/steps';
import { longestSteps, parts, stepTitle, type Step } from './select';
import type { Overview } from '../../api/types';
import css from './StepColumns.module.css';

/** Layout, px. */
const HEIGHT = 230;
const LEFT = 40;
const TOP = 22;
const BOTTOM = 24;
const RIGHT = 84; // room for the label of the average
const MIN_SLOT = 3; // px of a column with its gap; of more steps than fit, each column is the longest of several

interface Props {
  overview: Overview;
  chosen: string | undefined;
  onChoose: (step: string | undefined) => void;
}

/**
 * One column per step; a click shows that step alone, another click the average again. Of more steps than there is room for, each
 * column is the longest of its stretch.
 */
export function StepColumns({ overview, chosen, onChoose }: Props) {
  const { ref, width } = useWidth();
  const say = useStepWords();
  const [focused, setFocused] = useState<string | null>(null);
  const { average } = overview;
  const several = average !== null && overview.steps.length > 1;
  const edge = width - (several ? RIGHT : 0);
  const steps = useMemo(
    () => longestSteps(overview.steps, Math.floor((edge - LEFT) / MIN_SLOT)),
    [overview.steps, edge],
  );
  const longest = steps.reduce((most, step) => Math.max(most, step.duration_ns), 1);
  const { scale, unit } = timeUnit(longest);
  const rounded = scaleLinear([0, longest / scale], [HEIGHT - BOTTOM, TOP]).nice(5);
  const y = (ns: number) => rounded(ns / scale);
  const marks = rounded.ticks(5).map(mark => mark * scale);
  const label = rounded.tickFormat(5);
  const slot = (edge - LEFT) / Math.max(steps.length, 1);
  const column = Math.max(Math.min(slot * 0.68, 72), 1);
  const every = Math.max(1, Math.ceil(44 / slot));
  const move = (index: number) => {
    const step = steps[Math.min(Math.max(index, 0), steps.length - 1)];
    if (step) {
      document.getElementById(`step-${step.name}`)?.focus();
    }
  };
  return (
    <div ref={ref} style={{ height: HEIGHT }}>
      {width > 0 && (
        <svg
          width={width}
          height={HEIGHT}
          className={css.columns}
          data-picture={say(`Step by step, ${unit}`)}
        >
          <defs>
            <pattern
              id="hatch"
              width="6"
              height="6"
              patternTransform="rotate(45)"
              patternUnits="userSpaceOnUse"
            >
              <rect width="2.5" height="6" className={css.hatch} />
            </pattern>
          </defs>
          <text x={LEFT - 8} y={10} textAnchor="end" className="dim">
            {unit}
          </text>
          {steps.length < overview.step_count && (
            <text x={LEFT} y={10} className="dim">
              each column is the longest of up to {Math.ceil(overview.step_count / steps.length)} steps
            </text>
          )}
          <GridLines ticks={marks} y={y} left={LEFT} right={edge} label={mark => label(mark / scale)} />
          {steps.map((step, i) => (
            <Column
              key={step.name}
              step={step}
              title={stepTitle(overview, step)}
              filling={average?.filling === step.name}
              odd={average?.outliers.includes(step.name) ?? false}
              x={LEFT + slot * i + (slot - column) / 2}
              width={column}
              y={y}
              label={i % every === 0}
              pressed={chosen === step.name}
              active={chosen === step.name || focused === step.name}
              faded={chosen !== undefined && chosen !== step.name}
              onClick={() => onChoose(chosen === step.name ? undefined : step.name)}
              onFocus={focus => setFocused(focus ? step.name : null)}
              onMove={by => move(i + by)}
            />
          ))}
          {several && (
            <g pointerEvents="none">
              <line
                x1={LEFT}
                x2={edge}
                y1={y(average.duration_ns)}
                y2={y(average.duration_ns)}
                className={css.average}
                data-part="average-line"
              />
              <text x={edge + 6} y={y(average.duration_ns) + 4} className="soft">
                average {formatNumber(average.duration_ns / scale)}
              </text>
            </g>
          )}
          {slot > 34 &&
            // Drawn above the line of the average, which stops at their halo.
            steps.map((step, i) => (
              <text
                key={step.name}
                x={LEFT + slot * (i + 0.5)}
                y={y(step.duration_ns) - 5}
                textAnchor="middle"
                className="strong halo"
                data-part="step-value"
                aria-hidden="true"
                pointerEvents="none"
              >
                {formatNumber(step.duration_ns / scale)}
              </text>
            ))}
        </svg>
      )}
    </div>
  );
}

interface ColumnProps {
  step: Step;
  title: string;
  /** Whether its end includes the time by which the device falls behind the host. */
  filling: boolean;
  /** Whether it is far longer or shorter than the others. */
  odd: boolean;
  x: number;
  width: number;
  y: (ns: number) => number;
  label: boolean;
  /** Shown alone. */
  pressed: boolean;
  /** Shown alone or focused. */
  active: boolean;
  faded: boolean;
  onClick: () => void;
  onFocus: (focus: boolean) => void;
  onMove: (by: number) => void;
}

function Column({
  step,
  title,
  filling,
  odd,
  x,
  width,
  y,
  label,
  pressed,
  active,
  faded,
  onClick,
  onFocus,
  onMove,
}: ColumnProps) {
  const description = parts(step.categories, step.duration_ns)
    .map(part => `${part.title} ${formatDuration(part.ns)}`)
    .join(', ');
  const state = !step.complete
    ? ', incomplete: left out of the average'
    : filling
      ? ', with the time by which the device falls behind the host'
      : odd
        ? ', far from the others: left out of the average'
        : '';
  return (
    <>
      <g
        id={`step-${step.name}`}
        role="button"
        tabIndex={0}
        aria-pressed={pressed}
        aria-label={`${title}, ${formatDuration(step.duration_ns)}${state}: ${description}`}
        className={`${css.column} ${active ? css.active : ''} ${faded ? css.faded : ''}`}
        onClick={onClick}
        onFocus={() => onFocus(true)}
        onBlur={() => onFocus(false)}
        onKeyDown={event => {
          if (event.key === 'Enter' || event.key === ' ') {
            event.preventDefault();
            onClick();
          } else if (event.key === 'ArrowRight' || event.key === 'ArrowLeft') {
            event.preventDefault();
            onMove(event.key === 'ArrowRight' ? 1 : -1);
          }
        }}
      >
        <title>{`${title}: ${exactDuration(step.duration_ns)}${state}\n${description.replaceAll(', ', '\n')}`}</title>
        <rect
          x={x - 2}
          y={TOP - 14}
          width={width + 4}
          height={HEIGHT - TOP - BOTTOM + 14}
          className={css.hit}
        />
        {parts(step.categories, step.duration_ns).map(({ category, title: name, from, ns }) => {
          const [bottom, top] = [y(from), y(from + ns)];
          const gap = bottom - top > 3 ? 1 : 0;
          return (
            <rect
              key={category}
              x={x}
              y={top}
              width={width}
              height={bottom - top - gap}
              fill={categoryColor(category)}
              data-legend={name}
            />
          );
        })}
        {(!step.complete || filling || odd) && (
          <rect
            x={x}
            y={y(step.duration_ns)}
            width={width}
            height={y(0) - y(step.duration_ns)}
            fill="url(#hatch)"
          />
        )}
      </g>
      {label && (
        <text
          x={x + width / 2}
          y={HEIGHT - 8}
          textAnchor="middle"
          className="dim"
          aria-hidden="true"
          pointerEvents="none"
        >
          {step.name}
        </text>
      )}
    </>
  );
}
