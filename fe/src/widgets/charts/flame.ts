// Where each node of a flame graph lies.

export interface FlameNode {
  name: string;
  value: number;
  children: FlameNode[];
  /** Said after the time when the node is pointed at. */
  note?: string;
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
  const found: Box[] = [];
  let left = x;
  for (const child of node.children) {
    const size = (width * child.value) / node.value;
    if (size >= NARROWEST) {
      found.push({
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
  return found;
}
