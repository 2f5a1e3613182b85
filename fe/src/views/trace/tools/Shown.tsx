// What is drawn, and how: the same for one trace and for several ranks.
import type { ReactNode } from 'react';
import type { TracePayload } from '../../../api/types';
import { formatCount } from '../../../base/format';
import { Button } from '../../../widgets/inputs/Button';
import { Select } from '../../../widgets/inputs/Select';
import type { Paths } from '../follow/path';
import type { Timeline } from '../useTimeline';
import { CLOCKS, COLORS } from './Tools';

interface Props {
  payload: TracePayload;
  timeline: Timeline;
  paths: Paths | undefined;
  togglePython: () => void;
  togglePath: () => void;
  children?: ReactNode;
}

export function Shown({ payload, timeline, paths, togglePython, togglePath, children }: Props) {
  const { state, change } = timeline;
  return (
    <>
      {payload.counts.python_slices > 0 && (
        <Button aria-pressed={payload.python} title="Python frames (p)" onClick={togglePython}>
          Python
        </Button>
      )}
      {payload.steps.length > 0 && (
        <Button aria-pressed={state.path} title="Light the critical path (c)" onClick={togglePath}>
          Path
        </Button>
      )}
      {paths && paths.more > 0 && (
        <span className="dim">{formatCount(paths.more)} more of the path when zoomed in</span>
      )}
      <Select label="Color by" value={state.color} options={COLORS} onChange={color => change({ color })} />
      <Select
        label="Time from"
        value={state.clock === 'wall' && payload.wall_ns === null ? 'trace' : state.clock}
        options={CLOCKS.filter(([clock]) => clock !== 'wall' || payload.wall_ns !== null)}
        onChange={clock => change({ clock })}
      />
      {children}
    </>
  );
}
