// Positions of the boxes of a flame graph, and how the arrow keys move between them.

export interface FlameNode {
  name: string;
  value: number;
  children: FlameNode[];
  /** Shown after the time when the pointer is on the node. */
  note?: string;
  /** The color, where it differs from that of the graph. */
  color?: string;
  /** Time of the first call, for sorting only; null if it is unknown. */
  first?: number | null;
  /** A frame of an installed package. */
  library?: boolean;
  /** Data that the owner of the graph attaches. */
  data?: unknown;
}

export interface Box {
  node: FlameNode;
  x: number;
  width: number;
  depth: number;
  /** The nodes from a child of the root down to this one. */
  path: FlameNode[];
  /** Whether the node is a caller of the zoomed node. */
  isCaller: boolean;
}

/** Width of the narrowest box drawn, px. */
const MIN_BOX_WIDTH = 0.6;
/** Height of a row, px. */
export const FRAME_HEIGHT = 20;

/** Return the boxes of the zoomed node and its descendants level by level, below its callers at full width. */
export function layOutBoxes(zoomed: FlameNode, trail: FlameNode[], width: number): Box[] {
  const callers = trail.slice(0, -1);
  const boxes: Box[] = callers.map((node, depth) => ({
    node,
    x: 0,
    width,
    depth,
    path: callers.slice(0, depth + 1),
    isCaller: true,
  }));
  if (width <= 0) {
    return boxes;
  }
  let level: Box[] = [{ node: zoomed, x: 0, width, depth: callers.length, path: trail, isCaller: false }];
  while (level.length > 0) {
    boxes.push(...level);
    level = level.flatMap(childBoxes);
  }
  return boxes;
}

function childBoxes({ node, x, width, depth, path }: Box): Box[] {
  if (node.value <= 0) {
    return [];
  }
  const children: Box[] = [];
  let left = x;
  for (const child of node.children) {
    const size = (width * child.value) / node.value;
    if (size >= MIN_BOX_WIDTH) {
      children.push({
        node: child,
        x: left,
        width: size,
        depth: depth + 1,
        path: [...path, child],
        isCaller: false,
      });
    }
    left += size;
  }
  return children;
}

/** Rounding error of positions, px. */
const EPSILON = 1e-6;

const isParentOf = (outer: Box, inner: Box): boolean =>
  outer.depth === inner.depth - 1 &&
  outer.x <= inner.x + EPSILON &&
  inner.x + inner.width <= outer.x + outer.width + EPSILON;

interface Relatives {
  parent: Box | undefined;
  /** From left to right, including the box itself. */
  siblings: Box[];
  children: Box[];
}

/** Return the drawn parent, siblings, and children of a box. */
export function findRelatives(boxes: readonly Box[], box: Box): Relatives {
  const parent = boxes.find(other => isParentOf(other, box));
  return {
    parent,
    siblings: parent ? boxes.filter(other => isParentOf(parent, other)) : [box],
    children: boxes.filter(other => isParentOf(box, other)),
  };
}

/** Return the box that a key moves to: up to the parent, down to the first child, sideways among siblings. */
export function moveTarget(boxes: readonly Box[], box: Box, key: string): Box | undefined {
  const { parent, siblings, children } = findRelatives(boxes, box);
  const position = siblings.indexOf(box);
  switch (key) {
    case 'ArrowUp':
      return parent;
    case 'ArrowDown':
      return children[0];
    case 'ArrowLeft':
      return siblings[position - 1];
    case 'ArrowRight':
      return siblings[position + 1];
    case 'Home':
      return siblings[0];
    case 'End':
      return siblings.at(-1);
    default:
      return undefined;
  }
}
