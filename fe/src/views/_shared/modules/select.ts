// From the module tree to what is drawn: rows by place, sums by class, the flame graph. No React.
import type { ModuleFlame, ModuleRow } from '../../../api/types';
import type { FlameNode } from '../../../widgets/charts/flame';

/** The way to an event on the timeline; a Python frame is folded there unless it is asked for. */
export const onTimeline = (event: number, python: boolean) => ({
  view: 'trace',
  params: { event: String(event), ...(python ? { python: 'true' } : {}) },
});

/** All rows, each before those inside it. */
export function flat(rows: readonly ModuleRow[]): ModuleRow[] {
  const found: ModuleRow[] = [];
  const open = [...rows].reverse();
  for (let row = open.pop(); row; row = open.pop()) {
    found.push(row);
    open.push(...[...row.children].reverse());
  }
  return found;
}

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

/** Host time of a module that no module inside it has. */
export const ownHost = (row: ModuleRow): number => (row.host_self_ns ?? 0) + row.operators_ns;

export interface Sentence {
  before: string;
  mark: string;
  after: string;
  why: string;
}

export interface ClassRow {
  name: string;
  instances: number;
  occurrences: number;
  operators: number;
  device: number;
  forward: number;
  backward: number;
  host: number;
  backwardHost: number;
  /** The place with the most time. */
  place: number;
}

/** Sums over all instances of a class, of the time that is a module's own: nothing counts twice. */
export function byClass(rows: readonly ModuleRow[]): ClassRow[] {
  const found = new Map<string, ClassRow>();
  const most = new Map<string, number>();
  for (const row of flat(rows)) {
    const name = row.class_name || row.name;
    const sum = found.get(name) ?? {
      name,
      instances: 0,
      occurrences: 0,
      operators: 0,
      device: 0,
      forward: 0,
      backward: 0,
      host: 0,
      backwardHost: 0,
      place: row.place,
    };
    const time = row.device_self_ns || ownHost(row);
    found.set(name, {
      ...sum,
      instances: sum.instances + 1,
      occurrences: sum.occurrences + (row.occurrences ?? 0),
      operators: sum.operators + row.operators,
      device: sum.device + row.device_self_ns,
      forward: sum.forward + row.forward_device_self_ns,
      backward: sum.backward + row.backward_device_self_ns,
      host: sum.host + ownHost(row),
      backwardHost: sum.backwardHost + row.backward_host_self_ns,
      place: time > (most.get(name) ?? -1) ? row.place : sum.place,
    });
    most.set(name, Math.max(time, most.get(name) ?? -1));
  }
  return [...found.values()];
}

export type Frame = ModuleFlame['frames'][number];

/** The frames as nodes below one; what they do not cover is their own time. */
export function flameRoot(flame: ModuleFlame): FlameNode {
  const nodes = flame.frames.map((frame): FlameNode => ({
    name: frame.name,
    value: frame.value_ns,
    children: [],
    note: NOTE[frame.kind],
    data: frame,
  }));
  const root: FlameNode = { name: 'all modules', value: flame.total_ns, children: [] };
  flame.frames.forEach((frame, i) => {
    (frame.parent === null ? root : nodes[frame.parent]!).children.push(nodes[i]!);
  });
  for (const node of [root, ...nodes]) {
    node.children.sort((a, b) => b.value - a.value);
  }
  return root;
}

const NOTE: Record<Frame['kind'], string> = {
  module: 'module',
  operator: 'operators of this name, called by the module itself',
  backward: 'backward pass of the module itself',
};
