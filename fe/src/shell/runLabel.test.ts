import { expect, it } from 'vitest';
import { runLabel } from './runLabel';

it('puts the name of a tracker before that of the folder', () => {
  expect(runLabel({ name: 'wandb/run-1', tracker_name: 'batch 64' })).toBe('batch 64 (wandb/run-1)');
  expect(runLabel({ name: 'log/run', tracker_name: null })).toBe('log/run');
});
