// The logical timeline of both sides: a pair of bars per part, below them the difference and its running sum.
import { scaleLinear } from 'd3-scale';
import { line } from 'd3-shape';
import type { DiffLevel, DiffPart } from '../../api/types';
import { formatDuration, formatSignedDuration, timeUnit } from '../../base/format';
import { axisFormat, roundTickValues } from '../../base/ticks';
import { GridLines } from '../../widgets/charts/GridLines';
import { useWidth } from '../../widgets/charts/useWidth';
import { useStepWords } from '../../state/steps';
import { hasSomethingToOpen, type TimeOf } from './select';

import css from './PartBars.module.css';

/** Layout in pixels. */
const TIMES_HEIGHT = 150;
const DELTAS_HEIGHT = 90;
const LEFT = 44;
const MIN_SLOT = 22;
const GAP = 22;
const NAMES_HEIGHT = 16;

interface Props {
  level: DiffLevel;
  time: TimeOf;
  /** The sides, for the title of the saved picture. */
  compared: string;
  onOpen: (part: DiffPart) => void;
}

export function PartBars({ level, time, compared, onOpen }: Props) {
  const { ref, width } = useWidth();
  const say = useStepWords();
  const { parts } = level;
  const inner = Math.max(width - LEFT, parts.length * MIN_SLOT);
  const slot = inner / Math.max(parts.length, 1);
  const changeOf = (part: (typeof parts)[number]) => part[time];
  const longest = Math.max(
    ...parts.flatMap(part => [changeOf(part).base_ns ?? 0, changeOf(part).candidate_ns ?? 0]),
    1,
  );
  const runningSums = parts.map(part =>
    time === 'host' ? part.delta_accumulated_ns : part.delta_device_accumulated_ns,
  );
  const deltas = parts.map(part => changeOf(part).delta_ns);
  const reach = [...deltas, ...runningSums].reduce<[number, number]>(
    ([low, high], value) => [Math.min(low, value ?? 0), Math.max(high, value ?? 0)],
    [0, 0],
  );
  const y = scaleLinear([0, longest], [TIMES_HEIGHT, 14]);
  const below = scaleLinear(reach[0] < reach[1] ? reach : [0, 1], [
    TIMES_HEIGHT + GAP + DELTAS_HEIGHT - 6,
    TIMES_HEIGHT + GAP + 6,
  ]);
  const middle = (i: number) => LEFT + slot * (i + 0.5);
  const bar = Math.max(Math.min(slot * 0.34, 26), 3);
  const unit = timeUnit(longest);
  const deltaUnit = timeUnit(Math.max(Math.abs(reach[0]), Math.abs(reach[1])));
  const label = axisFormat(0, longest / unit.scale, 3);
  const deltaLabel = axisFormat(reach[0] / deltaUnit.scale, reach[1] / deltaUnit.scale, 3);
  const height = TIMES_HEIGHT + GAP + DELTAS_HEIGHT + NAMES_HEIGHT;
  const accumulated = line<number | null>(
    (_, i) => middle(i),
    value => below(value ?? 0),
  ).digits(1)(runningSums);
  return (
    <div ref={ref} className={css.chart} style={{ minHeight: height }}>
      {width > 0 && (
        <svg
          width={LEFT + inner}
          height={height}
          role="group"
          aria-label={say('Parts of the step on both sides')}
          data-picture={`Parts of ${level.part.name || say('the step')}, ${time} time, ${unit.unit}: ${compared}`}
        >
          <text x={LEFT - 8} y={10} textAnchor="end" className="dim">
            {unit.unit}
          </text>
          <GridLines
            ticks={roundTickValues(0, longest, 3, unit.scale)}
            y={y}
            left={LEFT}
            right={LEFT + inner}
            label={tick => label(tick / unit.scale)}
          />
          <GridLines
            ticks={roundTickValues(...reach, 3, deltaUnit.scale)}
            y={below}
            left={LEFT}
            right={LEFT + inner}
            label={tick => `${tick > 0 ? '+' : ''}${deltaLabel(tick / deltaUnit.scale)}`}
          />
          <text x={LEFT + 4} y={TIMES_HEIGHT + GAP - 4} className="dim">
            difference and its running sum ({deltaUnit.unit})
          </text>
          {parts.map((part, i) => {
            const change = changeOf(part);
            const delta = change.delta_ns ?? 0;
            const significant = change.verdict === 'slower' || change.verdict === 'faster';
            const canOpen = hasSomethingToOpen(part);
            const open = () => canOpen && onOpen(part);
            return (
              <g
                key={part.path}
                className={`${css.pair} ${canOpen ? css.opens : ''}`}
                data-part="part-pair"
                data-parts={part.parts}
                role={canOpen ? 'button' : 'img'}
                tabIndex={canOpen ? 0 : undefined}
                aria-label={`${part.short_name}: ${formatSignedDuration(delta)}`}
                onClick={open}
                onKeyDown={event => (event.key === 'Enter' || event.key === ' ') && open()}
              >
                <title>
                  {`${part.name}${part.candidate_name ? ` → ${part.candidate_name}` : ''}\n${time}: ${timeText(change.base_ns)} → ${timeText(change.candidate_ns)}${part.parts > 0 ? '\nOpen its parts' : canOpen ? '\nShow its first call' : ''}`}
                </title>
                <rect x={LEFT + slot * i} y={0} width={slot} height={height} className={css.hit} />
                <rect
                  x={middle(i) - bar - 1}
                  y={y(change.base_ns ?? 0)}
                  width={bar}
                  height={Math.max(TIMES_HEIGHT - y(change.base_ns ?? 0), change.base_ns ? 1 : 0)}
                  className={`${css.side} ${css.base}`}
                  data-legend="base"
                />
                <rect
                  x={middle(i) + 1}
                  y={y(change.candidate_ns ?? 0)}
                  width={bar}
                  height={Math.max(TIMES_HEIGHT - y(change.candidate_ns ?? 0), change.candidate_ns ? 1 : 0)}
                  className={`${css.side} ${css.candidate}`}
                  data-legend="candidate"
                />
                <rect
                  x={middle(i) - bar / 2}
                  y={Math.min(below(0), below(delta))}
                  width={bar}
                  height={Math.max(Math.abs(below(0) - below(delta)), delta ? 1 : 0)}
                  className={`${css.delta} ${css[significant ? change.verdict : 'noise'] ?? ''}`}
                  data-legend={`difference: ${significant ? change.verdict : 'not significant'}`}
                />
                {slot > 46 && (
                  <text x={middle(i)} y={height - 3} textAnchor="middle" className="soft">
                    {shortLabel(part.short_name, slot)}
                  </text>
                )}
              </g>
            );
          })}
          <path
            d={accumulated ?? undefined}
            className={css.added}
            data-legend="running sum of the differences"
          />
        </svg>
      )}
    </div>
  );
}

const timeText = (ns: number | null): string => (ns === null ? 'not recorded' : formatDuration(ns));

/** Average width of a letter of a label, px. */
const LETTER_WIDTH = 6.4;

function shortLabel(name: string, width: number): string {
  const letters = Math.floor(width / LETTER_WIDTH);
  const last = name.replace(/^nn\.Module: /, '');
  return last.length <= letters ? last : `${last.slice(0, Math.max(letters - 1, 1))}…`;
}
