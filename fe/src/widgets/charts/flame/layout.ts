// Where each node of a flame graph lies.

export interface FlameNode {
  name: string;
  value: number;
  children: FlameNode[];
  /** Said after the time when the node is pointed at. */
  note?: string;
  /** Where it is not that of the graph. */
  color?: string;
  /** When it was first called, null if that is not known; only the order counts. */
  first?: number | null;
  /** A frame of an installed package. */
  library?: boolean;
  /** What the owner of the graph wants to find again. */
  data?: unknown;
}

export interface Box {
  node: FlameNode;
  x: number;
  width: number;
  depth: number;
  /** The nodes from below the root down to this one. */
  path: FlameNode[];
  /** A caller of what is zoomed to. */
  above: boolean;
}

const NARROWEST = 0.6;
/** Height of a row, px. */
export const LINE = 20;

/** Boxes of what is zoomed to and all below it, with its callers above at full width; level by level. */
export function layout(zoomed: FlameNode, trail: FlameNode[], width: number): Box[] {
  const callers = trail.slice(0, -1);
  const boxes: Box[] = callers.map((node, depth) => ({
    node,
    x: 0,
    width,
    depth,
    path: callers.slice(0, depth + 1),
    above: true,
  }));
  if (width <= 0) {
    return boxes;
  }
  let level: Box[] = [{ node: zoomed, x: 0, width, depth: callers.length, path: trail, above: false }];
  while (level.length > 0) {
    boxes.push(...level);
    level = level.flatMap(below);
  }
  return boxes;
}

function below({ node, x, width, depth, path }: Box): Box[] {
  if (node.value <= 0) {
    return [];
  }
  const children: Box[] = [];
  let left = x;
  for (const child of node.children) {
    const size = (width * child.value) / node.value;
    if (size >= NARROWEST) {
      children.push({
        node: child,
        x: left,
        width: size,
        depth: depth + 1,
        path: [...path, child],
        above: false,
      });
    }
    left += size;
  }
  return children;
}

const EPSILON = 1e-6;

const holds = (outer: Box, inner: Box): boolean =>
  outer.depth === inner.depth - 1 &&
  outer.x <= inner.x + EPSILON &&
  inner.x + inner.width <= outer.x + outer.width + EPSILON;

export interface Relatives {
  parent: Box | undefined;
  /** With the box itself, from left to right. */
  siblings: Box[];
  children: Box[];
}

/** The boxes around one, as they are drawn. */
export function relatives(boxes: readonly Box[], box: Box): Relatives {
  const parent = boxes.find(other => holds(other, box));
  return {
    parent,
    siblings: parent ? boxes.filter(other => holds(parent, other)) : [box],
    children: boxes.filter(other => holds(box, other)),
  };
}

/** Where a key leads from a box: up to the parent, down to the first child, sideways among the siblings. */
export function target(boxes: readonly Box[], box: Box, key: string): Box | undefined {
  const { parent, siblings, children } = relatives(boxes, box);
  const place = siblings.indexOf(box);
  switch (key) {
    case 'ArrowUp':
      return parent;
    case 'ArrowDown':
      return children[0];
    case 'ArrowLeft':
      return siblings[place - 1];
    case 'ArrowRight':
      return siblings[place + 1];
    case 'Home':
      return siblings[0];
    case 'End':
      return siblings.at(-1);
    default:
      return undefined;
  }
}
