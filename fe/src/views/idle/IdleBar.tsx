import type { KeyboardEvent } from 'react';
import type { IdlePayload } from '../../api/types';
import { exactDuration, formatDuration, formatRatio } from '../../base/format';
import { useSelection } from '../../state/selection';
import { FoldedLegend } from '../../widgets/charts/FoldedLegend';
import { Button } from '../../widgets/inputs/Button';
import { useWidth } from '../../widgets/charts/useWidth';
import { causeColor } from '../../base/causes';
import { onTimeline, workOnTimeline, type CauseRow, type Work } from './select';
import css from './IdleBar.module.css';

/** Layout, px. */
const TOP = 30;
const BAR = 36;
const FUNNEL = 26;
const CAUSES = 40;
const MIN_LABEL_WIDTH = 120; // narrower parts have their label below the bar

interface Part {
  key: string;
  title: string;
  ns: number;
  color: string;
  x: number;
  width: number;
}

interface Props {
  payload: IdlePayload;
  rows: CauseRow[];
  title: string;
}

/** Bar of an average step, and below its idle time a bar of the causes. */
export function IdleBar({ payload, rows, title }: Props) {
  const { ref, width } = useWidth();
  const { selection, select } = useSelection();
  const steps = Math.max(payload.counted, 1);
  const duration = payload.duration_ns / steps;
  const idle = payload.idle_ns / steps;
  const parts = layOut(
    [
      ['compute', 'Compute', payload.compute_ns / steps, 'var(--c-kernel)'],
      ...splitExposed(payload, steps),
      ['copies', 'Exposed copies', payload.exposed_copy_ns / steps, 'var(--c-memcpy)'],
    ],
    duration,
    width,
  );
  const causes = layOut(
    rows.map(row => [row.key, row.title, row.time, causeColor(row.cause)]),
    idle,
    width,
  ).map((part, i) => ({ ...part, row: rows[i]! }));
  const openCause = (row: CauseRow) => select({ view: 'trace', params: onTimeline(payload, row) });
  const openWork = (part: Part) =>
    select({ view: 'trace', params: workOnTimeline(payload, selection.params.step, workOf(part.key)) });
  const from = duration > 0 ? width * (1 - idle / duration) : width;
  const top = TOP + BAR + FUNNEL;
  const narrow = (part: Part) => part.ns > 0 && part.width < MIN_LABEL_WIDTH;
  const chips = [
    ...parts.filter(narrow).map(part => ({
      part,
      about: `Show the longest stretch; ${formatRatio(part.ns / duration)} of the ${payload.step_noun}`,
      open: () => openWork(part),
    })),
    ...causes.filter(narrow).map(part => ({
      part,
      about: `Show the longest gap; ${formatRatio(part.ns / idle)} of the idle time`,
      open: () => openCause(part.row),
    })),
  ];
  return (
    <div ref={ref} className={css.bar} data-part="idle-bar">
      {width > 0 && (
        <svg
          width={width}
          height={idle > 0 ? top + CAUSES + 4 : TOP + BAR + 4}
          role="group"
          aria-label={[...parts.filter(part => part.ns > 0), { title: 'Idle', ns: idle }, ...causes]
            .map(part => `${part.title} ${formatDuration(part.ns)}`)
            .join(', ')}
          data-picture={`${title}: device activity, and the causes of its idle time`}
        >
          <defs>
            <pattern
              id="idle-hatch"
              width="6"
              height="6"
              patternUnits="userSpaceOnUse"
              patternTransform="rotate(45)"
            >
              <rect width="6" height="6" fill="var(--sf-2)" />
              <path d="M0 0V6" stroke="var(--ln-2)" strokeWidth="2" />
            </pattern>
          </defs>
          <Bracket x={0} width={from} title="busy" ns={duration - idle} total={duration} />
          <Bracket x={from} width={width - from} title="idle" ns={idle} total={duration} />
          {parts.map(part => (
            <g
              key={part.key}
              className={css.cause}
              {...(part.width < MIN_LABEL_WIDTH
                ? {}
                : buttonProps('Show the longest stretch', () => openWork(part)))}
              onClick={() => openWork(part)}
            >
              <Piece part={part} y={TOP} height={BAR} />
            </g>
          ))}
          {idle > 0 && (
            <>
              <rect
                x={from + 0.5}
                y={TOP + 0.5}
                width={Math.max(width - from - 1, 1)}
                height={BAR - 1}
                fill="url(#idle-hatch)"
                stroke="var(--ln-2)"
              />
              <path d={`M${from} ${TOP + BAR}H${width}V${top}H0z`} fill="var(--sf-2)" opacity={0.75} />
            </>
          )}
          {causes.map(part => (
            <g
              key={part.key}
              className={css.cause}
              {...(part.width < MIN_LABEL_WIDTH
                ? {}
                : buttonProps('Show the longest gap', () => openCause(part.row)))}
              onClick={() => openCause(part.row)}
            >
              <Piece part={part} y={top} height={CAUSES} />
            </g>
          ))}
        </svg>
      )}
      {chips.length > 0 && (
        <ul className={css.chips} aria-label="Parts too narrow for a label">
          <FoldedLegend entries={chips} timeOf={({ part }) => part.ns} total={duration}>
            {({ part, about, open }) => (
              <li key={part.key}>
                <Button look="bare" className={css.chip} title={about} onClick={open}>
                  <i className="dot" style={{ background: part.color }} />
                  {part.title} <strong>{formatDuration(part.ns)}</strong>
                </Button>
              </li>
            )}
          </FoldedLegend>
        </ul>
      )}
    </div>
  );
}

/** Props that make a labeled shape a button; narrower shapes have a button below the bar. */
const buttonProps = (about: string, act: () => void) => ({
  role: 'button',
  tabIndex: 0,
  'aria-description': about,
  onKeyDown: (event: KeyboardEvent) => {
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      act();
    }
  },
});

const TRANSFER = 'var(--c-communication)';
const WAITING = 'color-mix(in srgb, var(--c-communication) 55%, var(--sf))';
const UNKNOWN = 'color-mix(in srgb, var(--c-communication) 75%, var(--sf))';

/** Most awaited ranks with a part of their own. */
const MAX_AWAITED_RANKS = 3;

/** Exposed communication, split into transfer and waiting by awaited rank once the other ranks are read. */
export function splitExposed(
  { communication: parts, waits_for: waits, exposed_communication_ns: exposed }: IdlePayload,
  steps: number,
): [string, string, number, string][] {
  if (parts === null) {
    return [['communication', 'Exposed communication', exposed / steps, TRANSFER]];
  }
  const named = waits.slice(0, MAX_AWAITED_RANKS);
  const rest = parts.waiting_ns - named.reduce((sum, each) => sum + each.waiting_ns, 0);
  return [
    ['transfer', 'Exposed transfer', parts.transfer_ns, TRANSFER],
    ...named.map((each): [string, string, number, string] => [
      `waiting ${each.worker}`,
      `Waits for ${each.rank === null ? each.worker : `rank ${each.rank}`}`,
      each.waiting_ns,
      WAITING,
    ]),
    ['waiting', named.length > 0 ? 'Waits for more ranks' : 'Waits for other ranks', rest, WAITING],
    ['uncompared', 'Exposed communication, not compared', parts.uncompared_ns, UNKNOWN],
  ];
}

const workOf = (key: string): Work =>
  key === 'compute' ? 'compute' : key === 'copies' ? 'exposed_copy' : 'exposed_communication';

function layOut(items: [string, string, number, string][], total: number, width: number): Part[] {
  let x = 0;
  return items.map(([key, title, ns, color]) => {
    const part = { key, title, ns, color, x, width: total > 0 ? (width * ns) / total : 0 };
    x += part.width;
    return part;
  });
}

function Piece({ part, y, height }: { part: Part; y: number; height: number }) {
  if (part.ns <= 0) {
    return null;
  }
  return (
    <>
      <rect
        x={part.x}
        y={y}
        width={Math.max(part.width - 1, 0.75)}
        height={height}
        style={{ fill: part.color }}
        data-legend={`${part.title} ${formatDuration(part.ns)}`}
      >
        <title>{`${part.title}: ${exactDuration(part.ns)}`}</title>
      </rect>
      {part.width >= MIN_LABEL_WIDTH && (
        <g className={css.label}>
          <text x={part.x + 10} y={y + 16} className="strong">
            {part.title}
          </text>
          <text x={part.x + 10} y={y + 31}>
            {formatDuration(part.ns)}
          </text>
        </g>
      )}
    </>
  );
}

function Bracket(props: { x: number; width: number; title: string; ns: number; total: number }) {
  const { x, width, title, ns, total } = props;
  if (width < 1) {
    return null;
  }
  const text = `${title} ${formatDuration(ns)} · ${formatRatio(total > 0 ? ns / total : 0)}`;
  return (
    <g>
      <path d={`M${x + 0.5} ${TOP - 4}v-5h${Math.max(width - 1.5, 0)}v5`} className="leader" />
      {width > 6.4 * text.length && (
        <text x={x + width / 2} y={14} textAnchor="middle" className="soft">
          {title} <tspan className="strong">{formatDuration(ns)}</tspan> ·{' '}
          {formatRatio(total > 0 ? ns / total : 0)}
        </text>
      )}
    </g>
  );
}
