// The logical timeline of both: a pair of bars per part, below them the difference and what it adds up to.
import { scaleLinear } from 'd3-scale';
import { line } from 'd3-shape';
import type { DiffLevel, DiffPart } from '../../api/types';
import { formatDuration, timeUnit } from '../../base/format';
import { axisFormat, roundTickValues } from '../../base/ticks';
import { Grid } from '../../widgets/charts/Grid';
import { useWidth } from '../../widgets/charts/useWidth';
import { opens, type TimeOf } from './select';
import { signed } from './Verdict';
import css from './Parts.module.css';

const TALL = 150;
const FLAT = 90;
const LEFT = 44;
const NARROWEST = 22;
const GAP = 22;
const NAMES = 16;

interface Props {
  level: DiffLevel;
  time: TimeOf;
  /** What is compared with what. */
  compared: string;
  onOpen: (part: DiffPart) => void;
}

export function Parts({ level, time, compared, onOpen }: Props) {
  const { ref, width } = useWidth();
  const { parts } = level;
  const inner = Math.max(width - LEFT, parts.length * NARROWEST);
  const slot = inner / Math.max(parts.length, 1);
  const of = (part: (typeof parts)[number]) => part[time];
  const most = Math.max(...parts.flatMap(part => [of(part).base_ns ?? 0, of(part).candidate_ns ?? 0]), 1);
  const added = parts.map(part =>
    time === 'host' ? part.delta_accumulated_ns : part.delta_device_accumulated_ns,
  );
  const deltas = parts.map(part => of(part).delta_ns);
  const reach = [...deltas, ...added].reduce<[number, number]>(
    ([low, high], value) => [Math.min(low, value ?? 0), Math.max(high, value ?? 0)],
    [0, 0],
  );
  const y = scaleLinear([0, most], [TALL, 14]);
  const below = scaleLinear(reach[0] < reach[1] ? reach : [0, 1], [TALL + GAP + FLAT - 6, TALL + GAP + 6]);
  const middle = (i: number) => LEFT + slot * (i + 0.5);
  const bar = Math.max(Math.min(slot * 0.34, 26), 3);
  const unit = timeUnit(most);
  const change = timeUnit(Math.max(Math.abs(reach[0]), Math.abs(reach[1])));
  const label = axisFormat(0, most / unit.scale, 3);
  const changed = axisFormat(reach[0] / change.scale, reach[1] / change.scale, 3);
  const height = TALL + GAP + FLAT + NAMES;
  const accumulated = line<number | null>(
    (_, i) => middle(i),
    value => below(value ?? 0),
  ).digits(1)(added);
  return (
    <div ref={ref} className={css.chart} style={{ minHeight: height }}>
      {width > 0 && (
        <svg
          width={LEFT + inner}
          height={height}
          role="group"
          aria-label="Parts of the step on both sides"
          data-picture={`Parts of ${level.part.name || 'the step'}, ${time} time, ${unit.unit}: ${compared}`}
        >
          <text x={LEFT - 8} y={10} textAnchor="end" className="dim">
            {unit.unit}
          </text>
          <Grid
            ticks={roundTickValues(0, most, 3, unit.scale)}
            y={y}
            left={LEFT}
            right={LEFT + inner}
            label={tick => label(tick / unit.scale)}
          />
          <Grid
            ticks={roundTickValues(...reach, 3, change.scale)}
            y={below}
            left={LEFT}
            right={LEFT + inner}
            label={tick => `${tick > 0 ? '+' : ''}${changed(tick / change.scale)}`}
          />
          <text x={LEFT + 4} y={TALL + GAP - 4} className="dim">
            difference, and what it adds up to ({change.unit})
          </text>
          {parts.map((part, i) => {
            const own = of(part);
            const delta = own.delta_ns ?? 0;
            const real = own.verdict === 'slower' || own.verdict === 'faster';
            const opening = opens(part);
            const open = () => opening && onOpen(part);
            return (
              <g
                key={part.path}
                className={`${css.pair} ${opening ? css.opens : ''}`}
                data-part="part-pair"
                data-parts={part.parts}
                role={opening ? 'button' : 'img'}
                tabIndex={opening ? 0 : undefined}
                aria-label={`${part.short_name}: ${signed(delta)}`}
                onClick={open}
                onKeyDown={event => (event.key === 'Enter' || event.key === ' ') && open()}
              >
                <title>
                  {`${part.name}${part.candidate_name ? ` → ${part.candidate_name}` : ''}\n${time}: ${said(own.base_ns)} → ${said(own.candidate_ns)}${part.parts > 0 ? '\nOpen its parts' : opening ? '\nShow its first call' : ''}`}
                </title>
                <rect x={LEFT + slot * i} y={0} width={slot} height={height} className={css.hit} />
                <rect
                  x={middle(i) - bar - 1}
                  y={y(own.base_ns ?? 0)}
                  width={bar}
                  height={Math.max(TALL - y(own.base_ns ?? 0), own.base_ns ? 1 : 0)}
                  className={`${css.side} ${css.base}`}
                  data-legend="base"
                />
                <rect
                  x={middle(i) + 1}
                  y={y(own.candidate_ns ?? 0)}
                  width={bar}
                  height={Math.max(TALL - y(own.candidate_ns ?? 0), own.candidate_ns ? 1 : 0)}
                  className={`${css.side} ${css.candidate}`}
                  data-legend="candidate"
                />
                <rect
                  x={middle(i) - bar / 2}
                  y={Math.min(below(0), below(delta))}
                  width={bar}
                  height={Math.max(Math.abs(below(0) - below(delta)), delta ? 1 : 0)}
                  className={`${css.delta} ${css[real ? own.verdict : 'noise'] ?? ''}`}
                  data-legend={`difference: ${real ? own.verdict : 'not proven'}`}
                />
                {slot > 46 && (
                  <text x={middle(i)} y={height - 3} textAnchor="middle" className="soft">
                    {short(part.short_name, slot)}
                  </text>
                )}
              </g>
            );
          })}
          <path
            d={accumulated ?? undefined}
            className={css.added}
            data-legend="what the differences add up to"
          />
        </svg>
      )}
    </div>
  );
}

const said = (ns: number | null): string => (ns === null ? 'not known' : formatDuration(ns));

function short(name: string, room: number): string {
  const letters = Math.floor(room / 6.4);
  const last = name.replace(/^nn\.Module: /, '');
  return last.length <= letters ? last : `${last.slice(0, Math.max(letters - 1, 1))}…`;
}
