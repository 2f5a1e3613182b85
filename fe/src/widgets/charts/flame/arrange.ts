// How the calls of a flame graph lie side by side: in what order, which of them as one, which not at all.
import { group } from 'd3-array';
import type { FlameNode } from './layout';

export interface Arrangement {
  /** In the order of their first call, where that is known, instead of the heaviest first. */
  byCall: boolean;
  /** Siblings that are of one kind are one box: "12 × TimesformerLayer". */
  merged: boolean;
  /** Frames of installed packages give way to what they call. */
  folded: boolean;
}

/** A tree like this one, arranged; values stay what they are, so that widths add up as before. Never recursive: files
 * that are made to harm nest calls deeper than the stack of the browser. */
export function arrange(root: FlameNode, { byCall, merged, folded }: Arrangement): FlameNode {
  const own = folded ? ownBelow(root) : undefined;
  const copy = { ...root };
  const open = [copy];
  for (let node = open.pop(); node; node = open.pop()) {
    const calls = own ? unfold(node.children, own) : node.children;
    const boxes = merged ? merge(calls) : calls;
    node.children = boxes.map(box => ({ ...box })).sort(byCall ? earlier : heavier);
    for (const child of node.children) {
      open.push(child);
    }
  }
  return copy;
}

/** All nodes, each after the one around it. */
export function nodesOf(root: FlameNode): FlameNode[] {
  const nodes = [root];
  // The list grows while it is walked through.
  for (const { children } of nodes) {
    for (const child of children) {
      nodes.push(child);
    }
  }
  return nodes;
}

const heavier = (a: FlameNode, b: FlameNode) => b.value - a.value;
const earlier = (a: FlameNode, b: FlameNode) =>
  (a.first ?? Infinity) - (b.first ?? Infinity) || heavier(a, b);

/** What there is to choose for a tree. */
export function choices(root: FlameNode): { order: boolean; merge: boolean; fold: boolean } {
  const nodes = nodesOf(root);
  return {
    order: nodes.some(({ first, children }) => typeof first === 'number' && children.length > 1),
    merge: nodes.some(({ children }) => group(children, kindOf).size < children.length),
    fold: ownBelow(root).size > 0,
  };
}

/** The frames of a library that somewhere call what is none of its own. */
function ownBelow(root: FlameNode): Set<FlameNode> {
  const found = new Set<FlameNode>();
  for (const node of nodesOf(root).reverse()) {
    if (node.library && node.children.some(child => !child.library || found.has(child))) {
      found.add(node);
    }
  }
  return found;
}

/** What a frame of a library calls takes its place; one that calls nothing but libraries stays. */
function unfold(calls: readonly FlameNode[], own: ReadonlySet<FlameNode>): FlameNode[] {
  const kept: FlameNode[] = [];
  const open = calls.toReversed();
  for (let node = open.pop(); node; node = open.pop()) {
    if (own.has(node)) {
      for (const child of node.children.toReversed()) {
        open.push(child);
      }
    } else {
      kept.push(node);
    }
  }
  return kept;
}

const NUMBER = /[_.]\d+$/;

/** "Linear_3" and "Linear_7" are of one kind, and so are boxes of one name that folding has put side by side. */
const kindOf = ({ name }: FlameNode) => name.replace(NUMBER, '');

function merge(siblings: readonly FlameNode[]): FlameNode[] {
  const kinds = group(siblings, kindOf);
  return [...kinds].map(([kind, alike]) => (alike.length === 1 ? alike[0]! : together(kind, alike)));
}

function together(kind: string, alike: readonly FlameNode[]): FlameNode {
  const heaviest = alike.reduce((most, node) => (node.value > most.value ? node : most));
  const names = new Set(alike.map(({ name }) => name)).size;
  const first = alike.reduce((least, node) => Math.min(least, node.first ?? Infinity), Infinity);
  const all = {
    ...heaviest,
    first,
    value: alike.reduce((sum, node) => sum + node.value, 0),
    children: alike.flatMap(node => node.children),
  };
  return names > 1 ? { ...all, name: `${names} × ${kind}`, note: `the heaviest is ${heaviest.name}` } : all;
}
