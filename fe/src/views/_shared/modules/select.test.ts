import { expect, test } from 'vitest';
import golden from '../../../../../tests/golden/payloads/modules.json';
import type { ModuleFlame, ModuleRow } from '../../../api/types';
import { buildModuleFlame, pathTo, initiallyExpanded } from './select';

const rows: ModuleRow[] = golden.modules.rows;
const [net] = rows;
const deep: ModuleRow[] = [{ ...net!, place: 8, children: [{ ...net!, place: 9, children: rows }, ...rows] }];

test('the path to a place', () => {
  expect(pathTo(rows, 1).map(each => each.name)).toEqual(['Net_0', 'Linear_0']);
  expect(pathTo(deep, 1).map(each => each.place)).toEqual([8, 9, 0, 1]);
  expect(pathTo(rows, 7)).toEqual([]);
});

test('rows that are expanded at first', () => {
  expect(initiallyExpanded(rows)).toEqual(['0']);
  expect(initiallyExpanded(rows, 3)).toEqual(['0']);
  expect(initiallyExpanded(rows, 2)).toEqual([]);
  expect(initiallyExpanded(deep, 6)).toEqual(['8', '9', '0']);
  expect(initiallyExpanded(deep, 5)).toEqual(['8']);
});

test('frames become a tree', () => {
  const root = buildModuleFlame(golden['modules/flame'] as ModuleFlame);
  expect(root.value).toBe(117_000);
  const linear = root.children[0]!.children[0]!;
  expect(linear.name).toBe('Linear_0');
  expect(linear.children.map(each => each.name)).toEqual(['aten::linear', 'backward']);
});
