// Rows of the module tree by place, and the flame graph as a tree of nodes. No React.
import type { ModuleFlame, ModuleRow } from '../../../api/types';
import type { FlameNode } from '../../../widgets/charts/flame/layout';

/** The selection that shows an event on the timeline; Python frames are folded there unless requested. */
export const timelineTarget = (event: number, python: boolean) => ({
  view: 'trace',
  params: { event: String(event), ...(python ? { python: 'true' } : {}) },
});

/** Return the rows from the outermost module down to this place. */
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

/** Keys of the rows that are expanded at first: from the top down, as long as at most `maxRows` rows show. */
export function initiallyExpanded(rows: readonly ModuleRow[], maxRows = 30): string[] {
  const keys: string[] = [];
  let level = [...rows];
  let shown = level.length;
  while (level.length > 0 && shown + level.reduce((sum, row) => sum + row.children.length, 0) <= maxRows) {
    keys.push(...level.filter(row => row.children.length > 0).map(row => String(row.place)));
    level = level.flatMap(row => row.children);
    shown += level.length;
  }
  return keys;
}

export type Frame = ModuleFlame['frames'][number];

/** Return the frames as nodes below one root; what children leave uncovered is self time. */
export function buildModuleFlame(flame: ModuleFlame): FlameNode {
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
  operator: 'operators of this name that the module calls directly',
  backward: 'backward pass of the module itself',
};
