import { expect, test } from 'vitest';
import { sentence } from './select';

test('the hook with the most time of its own', () => {
  const hook = {
    place: 0,
    owner: '',
    event: 0,
    occurrences: 1,
    operators: 0,
    operators_ns: 0,
    host_mean_ns: 0,
    host_share: 1,
    device_total_ns: 0,
    device_self_ns: 0,
    device_share: null,
  };
  const inner = {
    ...hook,
    place: 1,
    name: 'L.training_step',
    host_total_ns: 75,
    host_self_ns: 75,
    children: [],
  };
  const said = sentence([{ ...hook, name: 'run', host_total_ns: 100, host_self_ns: 25, children: [inner] }]);
  expect(said.before + said.mark).toBe('L.training_step takes 75% of the time in hooks');
});
