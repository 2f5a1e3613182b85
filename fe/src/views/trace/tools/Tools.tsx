// The controls above the timeline.
import { Popover } from '@mantine/core';
import type { TraceColors, TracePayload } from '../../../api/types';
import { CATEGORY_TITLE, type Category } from '../../../base/category';
import { classColor, distinctColor, type ColorBy } from '../../../timeline/draw/colors';
import { nameOf } from '../../../timeline/draw/layout';
import type { Clock } from '../../../base/ticks';
import { Icon } from '../../../widgets/Icon';
import type { TraceState } from '../state';
import css from './Tools.module.css';

export const COLORS: readonly (readonly [ColorBy, string])[] = [
  ['class', 'category'],
  ['name', 'name'],
  ['module', 'module'],
  ['process_group', 'process group'],
];

export const CLOCKS: readonly (readonly [Clock, string])[] = [
  ['trace', 'trace start'],
  ['step', 'step start'],
  ['wall', 'wall clock'],
];

const CLASS_TITLE: Record<string, string> = {
  ...CATEGORY_TITLE,
  annotation: 'Annotation',
  python: 'Python',
  sync: 'Synchronization',
};

const LEGEND = 8;
const DEVICE_CLASSES: readonly string[] = ['kernel', 'memcpy', 'memset', 'runtime', 'sync'];

export function Legend({
  by,
  payload,
  colors,
}: {
  by: ColorBy;
  payload: TracePayload;
  colors?: TraceColors;
}) {
  if (by === 'name') {
    return <span className="dim">one color for every name</span>;
  }
  const texts = by === 'class' ? payload.classes : (colors?.texts ?? []);
  const device = payload.groups.some(group => group.kind === 'device');
  const entries = texts
    .map((text, code) => ({
      code,
      text: by === 'class' ? (CLASS_TITLE[text as Category] ?? text) : text,
      color: by === 'class' ? classColor(text) : distinctColor(code - 1),
    }))
    // Without a device the colors of its work would only explain what is not there.
    .filter(entry => by !== 'class' || device || !DEVICE_CLASSES.includes(texts[entry.code]!));
  const rest = entries.slice(LEGEND);
  return (
    <span className={css.legend}>
      {entries.slice(0, LEGEND).map(entry => (
        <span key={entry.code} className="clip" title={entry.text}>
          <i className="dot" style={{ background: entry.color }} /> {entry.text}
        </span>
      ))}
      {rest.length > 0 && (
        <Popover position="bottom-end" shadow="md" withinPortal>
          <Popover.Target>
            <button type="button" className="textlink">
              {rest.length} more
            </button>
          </Popover.Target>
          <Popover.Dropdown className={`menu ${css.menu}`} data-part="trace-menu">
            {rest.map(entry => (
              <span key={entry.code} className="clip" title={entry.text}>
                <i className="dot" style={{ background: entry.color }} /> {entry.text}
              </span>
            ))}
          </Popover.Dropdown>
        </Popover>
      )}
    </span>
  );
}

interface TracksProps {
  payload: TracePayload;
  state: TraceState;
  filter: string;
  onFilter: (filter: string) => void;
  onChange: (change: Partial<TraceState>) => void;
}

/** Which tracks are shown, and in what order. */
export function Tracks({ payload, state, filter, onFilter, onChange }: TracksProps) {
  const order = [...state.order, ...payload.groups.map((_, i) => i).filter(i => !state.order.includes(i))];
  const listed = payload.tracks.filter(track => track.kind !== 'steps');
  const move = (group: number, by: number) => {
    const from = order.indexOf(group);
    const next = order.filter(each => each !== group);
    next.splice(Math.max(0, from + by), 0, group);
    onChange({ order: next });
  };
  const toggle = (id: number, shown: boolean) =>
    onChange({ hidden: shown ? state.hidden.filter(each => each !== id) : [...state.hidden, id] });
  return (
    <Popover position="bottom-start" shadow="md" withinPortal trapFocus returnFocus width={340}>
      <Popover.Target>
        <button type="button" className="button">
          <Icon name="columns" size={14} /> Tracks {listed.length - state.hidden.length}
        </button>
      </Popover.Target>
      <Popover.Dropdown className={`menu ${css.menu}`} data-part="trace-menu">
        <input
          type="text"
          className="field"
          value={filter}
          placeholder="Filter tracks by name"
          aria-label="Filter tracks by name"
          onChange={event => onFilter(event.target.value)}
        />
        <span>
          <button type="button" className="textlink" onClick={() => onChange({ hidden: [] })}>
            Show all
          </button>{' '}
          <button
            type="button"
            className="textlink"
            onClick={() => onChange({ folded: [], pinned: [], order: [] })}
          >
            Reset order and folding
          </button>
        </span>
        {order.map(group => {
          const members = listed.filter(track => track.group === group);
          return (
            members.length > 0 && (
              <fieldset key={group}>
                <legend>
                  {payload.groups[group]!.name}
                  <button type="button" className="button quiet" title="Up" onClick={() => move(group, -1)}>
                    ↑
                  </button>
                  <button type="button" className="button quiet" title="Down" onClick={() => move(group, 1)}>
                    ↓
                  </button>
                </legend>
                {members.map(track => (
                  <label key={track.id} title={nameOf(track, payload)}>
                    <input
                      type="checkbox"
                      checked={!state.hidden.includes(track.id)}
                      onChange={event => toggle(track.id, event.target.checked)}
                    />
                    <span className="clip">{track.name}</span>
                  </label>
                ))}
              </fieldset>
            )
          );
        })}
      </Popover.Dropdown>
    </Popover>
  );
}
