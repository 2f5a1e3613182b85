// The controls above the timeline.
import { Popover } from '@mantine/core';
import type { ReactNode } from 'react';
import type { TracePayload } from '../../../api/types';
import { formatCount } from '../../../base/format';
import type { Clock } from '../../../base/ticks';
import type { ColorBy } from '../../../timeline/draw/colors';
import { trackName } from '../../../timeline/draw/layout';
import { Icon } from '../../../widgets/Icon';
import { Button } from '../../../widgets/inputs/Button';
import { Checkbox } from '../../../widgets/inputs/Checkbox';
import { Select } from '../../../widgets/inputs/Select';
import { TextField } from '../../../widgets/inputs/TextField';
import type { Paths } from '../follow/path';
import type { TraceState } from '../state';
import type { TimelineState } from '../useTimeline';
import css from './Tools.module.css';

const COLORS: readonly (readonly [ColorBy, string])[] = [
  ['class', 'category'],
  ['family', 'kernel family'],
  ['name', 'name'],
  ['module', 'module'],
  ['process_group', 'process group'],
];

/** The zero of the times that the trace can show. */
const clocks = ({ step_noun: noun, wall_ns: wall }: TracePayload): (readonly [Clock, string])[] => [
  ['trace', 'trace start'],
  ['step', `${noun} start`],
  ...(wall === null ? [] : ([['wall', 'wall clock']] as const)),
];

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
                  <Button look="quiet" title="Move up" onClick={() => move(group, -1)}>
                    ↑
                  </Button>
                  <Button look="quiet" title="Move down" onClick={() => move(group, 1)}>
                    ↓
                  </Button>
                </legend>
                {members.map(track => (
                  <Checkbox
                    key={track.id}
                    title={trackName(track, payload)}
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
  frames > 0 ? 'only Python frames' : 'no slice has a time';

interface DisplayProps {
  payload: TracePayload;
  timeline: TimelineState;
  paths: Paths | undefined;
  togglePython: () => void;
  togglePath: () => void;
  children?: ReactNode;
}

export function DisplayOptions({
  payload,
  timeline,
  paths,
  togglePython,
  togglePath,
  children,
}: DisplayProps) {
  const { state, change } = timeline;
  return (
    <>
      {payload.counts.python_slices > 0 && (
        <Button aria-pressed={payload.python} title="Show Python frames (p)" onClick={togglePython}>
          Python
        </Button>
      )}
      {payload.steps.length > 0 && (
        <Button aria-pressed={state.path} title="Highlight the critical path (c)" onClick={togglePath}>
          Path
        </Button>
      )}
      {paths && paths.more > 0 && (
        <span className="dim">{formatCount(paths.more)} more path segments when zoomed in</span>
      )}
      <Select label="Color by" value={state.color} options={COLORS} onChange={color => change({ color })} />
      <Select
        label="Time from"
        value={state.clock === 'wall' && payload.wall_ns === null ? 'trace' : state.clock}
        options={clocks(payload)}
        onChange={clock => change({ clock })}
      />
      {children}
    </>
  );
}
