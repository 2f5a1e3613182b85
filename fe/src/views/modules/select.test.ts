import { expect, test } from 'vitest';
import type { ModuleRow } from '../../api/types';
import { sentence } from './select';

function row(place: number, name: string, given: Partial<ModuleRow> = {}): ModuleRow {
  return {
    place,
    name,
    class_name: name.replace(/_\d+$/, ''),
    module_id: 0,
    event: place,
    occurrences: 1,
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

test('the sentence names the class with the most device time and where the rest is', () => {
  const said = sentence({
    rows: [net],
    has_device: true,
    has_backward: true,
    device_ns: 200,
    outside: { calls: 1, device_ns: 60 },
    unlinked: { calls: 2, device_ns: 40 },
  });
  expect(said.before + said.mark + said.after).toBe(
    'The 2 Linear modules take 80% of the modules’ device time.',
  );
  expect(said.why).toBe(
    'Forward 70.0 ns, backward 30.0 ns. Of all device time 30% was launched outside of any module, 20% is not linked to a launch.',
  );
});

test('without a device the sentence is about the host', () => {
  const none = { calls: 0, device_ns: 0 };
  const said = sentence({
    rows: [net],
    has_device: false,
    has_backward: false,
    device_ns: 0,
    outside: none,
    unlinked: none,
  });
  expect(said.mark).toBe('70% of the modules’ host time');
  expect(said.why).toBe('');
});
