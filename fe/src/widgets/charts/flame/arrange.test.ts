import { expect, it } from 'vitest';
import { arrange, listNodes, type FlameArrangement } from './arrange';
import type { FlameNode } from './layout';

const node = (
  name: string,
  value: number,
  children: FlameNode[] = [],
  more: Partial<FlameNode> = {},
): FlameNode => ({
  name,
  value,
  children,
  ...more,
});
const PLAIN: FlameArrangement = { byCall: false, merged: false, folded: false };
const names = (root: FlameNode) => root.children.map(({ name }) => name);

it('sorts by time, or by the first call', () => {
  const root = node('all', 9, [
    node('a', 2, [], { first: 5 }),
    node('b', 4, [], { first: 7 }),
    node('c', 3, [], { first: 1 }),
  ]);
  expect(names(arrange(root, PLAIN))).toEqual(['b', 'c', 'a']);
  expect(names(arrange(root, { ...PLAIN, byCall: true }))).toEqual(['c', 'a', 'b']);
  expect(names(root)).toEqual(['a', 'b', 'c']); // the original is unchanged
});

it('merges siblings of one kind into one box with their total time and their calls', () => {
  const layer = (i: number, value: number) =>
    node(`Layer_${i}`, value, [node('mm', value - 1), node('add', 1)]);
  const root = node('all', 30, [layer(0, 8), node('Head_0', 5), layer(1, 10), layer(2, 7)]);
  const [layers, head] = arrange(root, { ...PLAIN, merged: true }).children;
  expect([layers!.name, layers!.value, layers!.note]).toEqual(['3 × Layer', 25, 'the heaviest is Layer_1']);
  expect(layers!.children.map(({ name, value }) => [name, value])).toEqual([
    ['mm', 22],
    ['add', 3],
  ]);
  expect(head!.name).toBe('Head_0'); // a single node isn't merged
  expect(arrange(root, PLAIN).children).toHaveLength(4);
});

it('replaces library frames by what they call, unless they only call libraries', () => {
  const library = { library: true };
  const root = node('mm', 10, [
    node('train.py(3): main', 10, [
      node('module.py(9): _call_impl', 7, [node('model.py(4): forward', 6)], library),
      node('module.py(9): _wrapped', 2, [node('functional.py(1): linear', 2, [], library)], library),
      node('model.py(4): forward', 1),
    ]),
  ]);
  const [main] = arrange(root, { byCall: false, merged: true, folded: true }).children;
  expect(main!.children.map(({ name, value }) => [name, value])).toEqual([
    ['model.py(4): forward', 7],
    ['module.py(9): _wrapped', 2],
  ]);
});

it('arranges a tree deeper than any stack', () => {
  let deep = node('model.py(1): f', 1);
  for (let i = 0; i < 100_000; i++) {
    deep = node('module.py(1): g', 1, [deep], { library: true });
  }
  const root = node('all', 1, [deep]);
  expect(names(arrange(root, { byCall: false, merged: true, folded: true }))).toEqual(['model.py(1): f']);
  expect(listNodes(arrange(root, { ...PLAIN, merged: true }))).toHaveLength(100_002);
});
