import { screen, within } from '@testing-library/react';
import { expect, it } from 'vitest';
import golden from '../../../../tests/golden/payloads/modules.json';
import { drawView, serveGoldens } from '../../testing/view';
import View from '.';

serveGoldens(golden);

it('shows the tree of modules with the work that belongs to none', () => {
  drawView(View, golden.modules);
  const tree = screen.getByRole('treegrid', { name: 'modules' });
  expect(within(tree).getByRole('row', { name: /Net_0/ }).textContent).toContain('117 µs');
  expect(screen.getByText(/outside any module 3\.00 µs in 1 device event/)).toBeTruthy();
});

it('draws the flame graph', async () => {
  drawView(View, golden.modules, { params: { show: 'flame' } });
  expect(await screen.findByRole('tree', { name: 'Flame graph of all modules' })).toBeTruthy();
});

it('opens the call tree level by level', async () => {
  drawView(View, golden.modules, { params: { show: 'calls' } });
  const calls = await screen.findByRole('treegrid', { name: 'Call tree' });
  expect((await within(calls).findAllByText(/run_training_batch/)).length).toBeGreaterThan(0);
});
