import { fireEvent, screen } from '@testing-library/react';
import { expect, it } from 'vitest';
import golden from '../../../../tests/golden/payloads/lightning.json';
import { drawView, serveGoldens } from '../../testing/view';
import View from '.';

serveGoldens(golden);

it('shows the hooks, and the modules on demand', async () => {
  drawView(View, golden.lightning);
  const hook = screen.getByText(/run_training_batch/, { selector: '[role=row] *' });
  expect(hook.closest('[role=row]')!.textContent).toContain('200 µs');
  fireEvent.click(screen.getByRole('radio', { name: 'Modules' }));
  expect(await screen.findByText('layer')).toBeTruthy();
});

it('draws the flame graph', async () => {
  drawView(View, golden.lightning, { params: { show: 'flame' } });
  expect(await screen.findByRole('tree', { name: 'Flame graph of all modules' })).toBeTruthy();
});

it('opens a module with its calls', async () => {
  drawView(View, golden.lightning, { params: { show: 'modules', place: '0' } });
  expect(await screen.findByRole('heading', { name: '1 call' })).toBeTruthy();
});
