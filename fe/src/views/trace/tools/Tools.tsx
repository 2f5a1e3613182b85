// The controls above the timeline.
import { Popover } from '@mantine/core';
import { useMemo } from 'react';
import type { TraceColors, TracePayload } from '../../../api/types';
import type { ColorBy } from '../../../timeline/draw/colors';
import { nameOf } from '../../../timeline/draw/layout';
import type { Tile } from '../../../timeline/tiles/tile';
import type { Clock } from '../../../base/ticks';
import { Button } from '../../../widgets/inputs/Button';
import { Checkbox } from '../../../widgets/inputs/Checkbox';
import { TextField } from '../../../widgets/inputs/TextField';
import { Icon } from '../../../widgets/Icon';
import { timeByColor } from '../select';
import type { TraceState } from '../state';
import { meanings, type Meaning as Entry } from './meanings';
import css from './Tools.module.css';

export const COLORS: readonly (readonly [ColorBy, string])[] = [
  ['class', 'category'],
  ['family', 'kernel family'],
  ['name', 'name'],
  ['module', 'module'],
  ['process_group', 'process group'],
];

export const CLOCKS: readonly (readonly [Clock, string])[] = [
  ['trace', 'trace start'],
  ['step', 'step start'],
  ['wall', 'wall clock'],
];

const LEGEND = 8;

interface LegendProps {
  by: ColorBy;
  payload: TracePayload;
  colors?: TraceColors;
  /** What fills it comes first, and what is not seen in it aside. */
  tile?: Tile | undefined;
  /** Search for what a query finds; without it nothing in the legend can be clicked. */
  onFind?: (query: string) => void;
}

/** What the colors mean; a click on a family of kernels finds its slices. */
export function Legend({ by, payload, colors, tile, onFind }: LegendProps) {
  const filled = useMemo(
    () => (by === 'class' && tile ? timeByColor(tile) : new Map<number, number>()),
    [by, tile],
  );
  if (by === 'name') {
    return (
      <span className="dim">a name has the same color everywhere; there are fewer colors than names</span>
    );
  }
  const entries = meanings(by, payload, colors).toSorted(
    (a, b) => (filled.get(b.code) ?? 0) - (filled.get(a.code) ?? 0),
  );
  // The first of the family's texts stands for what is of none.
  const findable = (entry: Entry) => by === 'family' && entry.code !== 0;
  const seen = filled.size > 0 ? entries.filter(entry => filled.has(entry.code)).length : LEGEND;
  const first = Math.min(seen, LEGEND);
  const rest = entries.slice(first);
  return (
    <span className={css.legend} data-part="legend">
      {entries.slice(0, first).map(entry => (
        <Meaning key={entry.code} entry={entry} find={findable(entry) ? onFind : undefined} />
      ))}
      {rest.length > 0 && (
        <Popover position="bottom-end" shadow="md" withinPortal>
          <Popover.Target>
            <Button look="text">{rest.length} more</Button>
          </Popover.Target>
          <Popover.Dropdown className={`menu ${css.menu}`} data-part="trace-menu">
            {rest.map(entry => (
              <Meaning key={entry.code} entry={entry} find={findable(entry) ? onFind : undefined} />
            ))}
          </Popover.Dropdown>
        </Popover>
      )}
    </span>
  );
}

function Meaning({ entry, find }: { entry: Entry; find?: (query: string) => void }) {
  const shown = (
    <span className="clip" title={entry.text}>
      <i className="dot" style={{ background: entry.color }} /> {entry.text}
    </span>
  );
  return find ? (
    <Button look="text" title={`Find ${entry.text}`} onClick={() => find(`family:${entry.text}`)}>
      {shown}
    </Button>
  ) : (
    shown
  );
}

interface TracksProps {
  payload: TracePayload;
  state: TraceState;
  /** Tracks with nothing to draw. */
  empty?: readonly number[];
  filter: string;
  onFilter: (filter: string) => void;
  onChange: (change: Partial<TraceState>) => void;
}

/** Which tracks are shown, and in what order. */
export function Tracks({ payload, state, empty = [], filter, onFilter, onChange }: TracksProps) {
  const order = [...state.order, ...payload.groups.map((_, i) => i).filter(i => !state.order.includes(i))];
  const listed = payload.tracks.filter(track => track.kind !== 'steps');
  const shown = listed.filter(({ id }) => !state.hidden.includes(id) && !empty.includes(id)).length;
  const move = (group: number, by: number) => {
    const from = order.indexOf(group);
    const next = order.filter(each => each !== group);
    next.splice(Math.max(0, from + by), 0, group);
    onChange({ order: next });
  };
  const toggle = (id: number, on: boolean) =>
    onChange({ hidden: on ? state.hidden.filter(each => each !== id) : [...state.hidden, id] });
  return (
    <Popover position="bottom-start" shadow="md" withinPortal trapFocus returnFocus width={340}>
      <Popover.Target>
        <Button>
          <Icon name="columns" size={14} /> Tracks {shown < listed.length && `${shown} of `}
          {listed.length}
        </Button>
      </Popover.Target>
      <Popover.Dropdown className={`menu ${css.menu}`} data-part="trace-menu">
        <TextField
          name="Filter tracks by name"
          value={filter}
          placeholder="Filter tracks by name"
          onChange={onFilter}
        />
        <span>
          <Button look="text" onClick={() => onChange({ hidden: [] })}>
            Show all
          </Button>{' '}
          <Button look="text" onClick={() => onChange({ folded: [], deep: [], pinned: [], order: [] })}>
            Reset order and folding
          </Button>
        </span>
        {order.map(group => {
          const members = listed.filter(track => track.group === group);
          return (
            members.length > 0 && (
              <fieldset key={group}>
                <legend>
                  {payload.groups[group]!.name}
                  <Button look="quiet" title="Up" onClick={() => move(group, -1)}>
                    ↑
                  </Button>
                  <Button look="quiet" title="Down" onClick={() => move(group, 1)}>
                    ↓
                  </Button>
                </legend>
                {members.map(track => (
                  <Checkbox
                    key={track.id}
                    title={nameOf(track, payload)}
                    label={
                      <span className="clip">
                        {track.name}
                        {empty.includes(track.id) && <span className="dim"> · {whyEmpty(track)}</span>}
                      </span>
                    }
                    disabled={empty.includes(track.id)}
                    checked={!state.hidden.includes(track.id) && !empty.includes(track.id)}
                    onChange={on => toggle(track.id, on)}
                  />
                ))}
              </fieldset>
            )
          );
        })}
      </Popover.Dropdown>
    </Popover>
  );
}

const whyEmpty = ({ python_slices: frames }: TracePayload['tracks'][number]): string =>
  frames > 0 ? 'Python frames alone' : 'no slice has a time';
