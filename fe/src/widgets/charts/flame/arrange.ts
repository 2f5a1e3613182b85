// How the calls of a flame graph are arranged: their order, which of them are merged, and which are left out.
import { group } from 'd3-array';
import type { FlameNode } from './layout';

export interface FlameArrangement {
  /** Siblings in the order of their first call, where that is known, instead of the heaviest first. */
  byCall: boolean;
  /** Siblings of one kind are one box: "12 × TimesformerLayer". */
  merged: boolean;
  /** Frames of installed packages are replaced by what they call. */
  folded: boolean;
}

/**
 * Return an arranged copy of a tree. Values don't change, so the widths still add up. It isn't recursive, because
 * malicious files nest calls deeper than the browser's stack.
 */
export function arrange(root: FlameNode, { byCall, merged, folded }: FlameArrangement): FlameNode {
  const foldable = folded ? foldableFrames(root) : undefined;
  const copy = { ...root };
  const open = [copy];
  for (let node = open.pop(); node; node = open.pop()) {
    const calls = foldable ? replaceFrames(node.children, foldable) : node.children;
    const boxes = merged ? mergeSiblings(calls) : calls;
    node.children = boxes.map(box => ({ ...box })).sort(byCall ? compareFirstCalls : compareValues);
    for (const child of node.children) {
      open.push(child);
    }
  }
  return copy;
}

/** Return all nodes, each after its parent. */
export function listNodes(root: FlameNode): FlameNode[] {
  const nodes = [root];
  // The loop also visits the nodes that it appends.
  for (const { children } of nodes) {
    for (const child of children) {
      nodes.push(child);
    }
  }
  return nodes;
}

const compareValues = (a: FlameNode, b: FlameNode) => b.value - a.value;
const compareFirstCalls = (a: FlameNode, b: FlameNode) =>
  (a.first ?? Infinity) - (b.first ?? Infinity) || compareValues(a, b);

/** Return which options of the arrangement make a difference for a tree. */
export function availableOptions(root: FlameNode): { order: boolean; merge: boolean; fold: boolean } {
  const nodes = listNodes(root);
  return {
    order: nodes.some(({ first, children }) => typeof first === 'number' && children.length > 1),
    merge: nodes.some(({ children }) => group(children, kindOf).size < children.length),
    fold: foldableFrames(root).size > 0,
  };
}

/** Return the library frames that directly or indirectly call something outside the library. */
function foldableFrames(root: FlameNode): Set<FlameNode> {
  const found = new Set<FlameNode>();
  for (const node of listNodes(root).reverse()) {
    if (node.library && node.children.some(child => !child.library || found.has(child))) {
      found.add(node);
    }
  }
  return found;
}

/** Return `calls` with each foldable frame replaced by what it calls. */
function replaceFrames(calls: readonly FlameNode[], foldable: ReadonlySet<FlameNode>): FlameNode[] {
  const remaining: FlameNode[] = [];
  const open = calls.toReversed();
  for (let node = open.pop(); node; node = open.pop()) {
    if (foldable.has(node)) {
      for (const child of node.children.toReversed()) {
        open.push(child);
      }
    } else {
      remaining.push(node);
    }
  }
  return remaining;
}

const NUMBER_SUFFIX = /[_.]\d+$/;

/** Return the name without its number: "Linear_3" and "Linear_7" are of one kind. */
const kindOf = ({ name }: FlameNode) => name.replace(NUMBER_SUFFIX, '');

function mergeSiblings(siblings: readonly FlameNode[]): FlameNode[] {
  const kinds = group(siblings, kindOf);
  return [...kinds].map(([kind, nodes]) => (nodes.length === 1 ? nodes[0]! : mergeNodes(kind, nodes)));
}

function mergeNodes(kind: string, nodes: readonly FlameNode[]): FlameNode {
  const heaviest = nodes.reduce((max, node) => (node.value > max.value ? node : max));
  const nameCount = new Set(nodes.map(({ name }) => name)).size;
  const first = nodes.reduce((min, node) => Math.min(min, node.first ?? Infinity), Infinity);
  const merged = {
    ...heaviest,
    first,
    value: nodes.reduce((sum, node) => sum + node.value, 0),
    children: nodes.flatMap(node => node.children),
  };
  return nameCount > 1
    ? { ...merged, name: `${nameCount} × ${kind}`, note: `the heaviest is ${heaviest.name}` }
    : merged;
}
