// From the module tree to what is drawn: rows by place, the flame graph. No React.
import type { ModuleFlame, ModuleRow } from '../../../api/types';
import type { FlameNode } from '../../../widgets/charts/flame/layout';

/** The way to an event on the timeline; a Python frame is folded there unless it is asked for. */
export const onTimeline = (event: number, python: boolean) => ({
  view: 'trace',
  params: { event: String(event), ...(python ? { python: 'true' } : {}) },
});

/** The rows from the outermost down to this place. */
export function pathTo(rows: readonly ModuleRow[], place: number): ModuleRow[] {
  for (const row of rows) {
    if (row.place === place) {
      return [row];
    }
    const below = pathTo(row.children, place);
    if (below.length > 0) {
      return [row, ...below];
    }
  }
  return [];
}

/** What is open at first: from the top down until the model branches. */
export function trunk(rows: readonly ModuleRow[], most = 30): string[] {
  const keys: string[] = [];
  let level = [...rows];
  let shown = level.length;
  while (level.length > 0 && shown + level.reduce((sum, row) => sum + row.children.length, 0) <= most) {
    keys.push(...level.filter(row => row.children.length > 0).map(row => String(row.place)));
    level = level.flatMap(row => row.children);
    shown += level.length;
  }
  return keys;
}

export type Frame = ModuleFlame['frames'][number];

/** The frames as nodes below one; what they leave uncovered is self time. */
export function flameRoot(flame: ModuleFlame): FlameNode {
  const nodes = flame.frames.map((frame): FlameNode => ({
    name: frame.name,
    value: frame.value_ns,
    children: [],
    note: NOTE[frame.kind],
    first: frame.first_ns,
    data: frame,
  }));
  const root: FlameNode = { name: 'all modules', value: flame.total_ns, children: [] };
  flame.frames.forEach((frame, i) => {
    (frame.parent === null ? root : nodes[frame.parent]!).children.push(nodes[i]!);
  });
  return root;
}

const NOTE: Record<Frame['kind'], string> = {
  module: 'module',
  operator: 'operators of this name, called by the module itself',
  backward: 'backward pass of the module itself',
};
