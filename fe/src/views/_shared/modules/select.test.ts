import { expect, test } from 'vitest';
import type { ModuleFlame, ModuleRow } from '../../../api/types';
import { flameRoot, pathTo, trunk } from './select';

function row(place: number, name: string, given: Partial<ModuleRow> = {}): ModuleRow {
  return {
    place,
    name,
    class_name: name.replace(/_\d+$/, ''),
    module_id: 0,
    event: place,
    calls: 1,
    operators: 1,
    host_total_ns: 0,
    host_self_ns: 0,
    operators_ns: 0,
    host_mean_ns: 0,
    host_share: 0,
    device_total_ns: 0,
    device_self_ns: 0,
    device_share: 0,
    forward_device_total_ns: 0,
    forward_device_self_ns: 0,
    backward_device_total_ns: 0,
    backward_device_self_ns: 0,
    backward_host_total_ns: 0,
    backward_host_self_ns: 0,
    children: [],
    ...given,
  };
}

const net = row(0, 'Net_0', {
  host_self_ns: 10,
  children: [
    row(1, 'Linear_0', { host_self_ns: 5, operators_ns: 25, device_self_ns: 30, forward_device_self_ns: 30 }),
    row(2, 'Block_0', {
      children: [
        row(3, 'Linear_1', {
          host_self_ns: 5,
          operators_ns: 35,
          device_self_ns: 50,
          forward_device_self_ns: 20,
          backward_device_self_ns: 30,
        }),
      ],
    }),
    row(4, 'ReLU_0', { host_self_ns: 20, device_self_ns: 20, forward_device_self_ns: 20 }),
  ],
});

test('the way down to a place', () => {
  expect(pathTo([net], 3).map(each => each.name)).toEqual(['Net_0', 'Block_0', 'Linear_1']);
  expect(pathTo([net], 9)).toEqual([]);
});

test('what is open at first', () => {
  expect(trunk([net])).toEqual(['0', '2']);
  expect(trunk([net], 4)).toEqual(['0']);
  expect(trunk([net], 1)).toEqual([]);
});

test('frames become a tree, the widest first', () => {
  const frame = { place: 0, event: null };
  const flame: ModuleFlame = {
    time: 'host',
    total_ns: 100,
    frames: [
      { ...frame, name: 'Net_0', kind: 'module', parent: null, value_ns: 100 },
      { ...frame, name: 'aten::view', kind: 'operator', parent: 0, value_ns: 10 },
      { ...frame, name: 'backward', kind: 'backward', parent: 0, value_ns: 60 },
    ],
  };
  const root = flameRoot(flame);
  expect(root.value).toBe(100);
  expect(root.children[0]!.children.map(each => each.name)).toEqual(['backward', 'aten::view']);
});
