import { fireEvent, screen, within } from '@testing-library/react';
import { expect, it } from 'vitest';
import golden from '../../../../tests/golden/payloads/operators.json';
import { drawView, pick, serveGoldens } from '../../testing/view';
import View from '.';

serveGoldens(golden);

it('shows the operators, and the details of the selected one', async () => {
  drawView(View, golden.operators);
  const row = within(screen.getByRole('grid')).getByRole('row', { name: /aten::mm/ });
  expect(row.textContent).toContain('1.50 ms');
  expect(document.querySelector('img')).toBeNull(); // a name is a text, whatever it holds
  fireEvent.click(row);
  expect(await screen.findByRole('group', { name: 'Distribution of the durations' })).toBeTruthy();
  expect(screen.getByText('median 100 µs')).toBeTruthy();
});

it('shows the share of roofline, or why it is unknown', () => {
  const { speed: _, ...reasons } = golden.operators.reasons;
  const known = { flops_per_s: 2e12, bytes_per_s: 3e9, efficiency: 0.5, bound: 'memory', reason: null };
  const unknown = { flops_per_s: null, bytes_per_s: null, efficiency: null, bound: 'unknown', reason: 'why' };
  const [row] = golden.operators.rows;
  const rows = [
    { ...row, name: 'aten::known', speed: known },
    { ...row, name: 'aten::unknown', speed: unknown },
  ];
  drawView(View, { ...golden.operators, rows, reasons });
  const grid = within(screen.getByRole('grid'));
  expect(grid.getByRole('row', { name: /aten::known/ }).textContent).toContain('50% memory');
  expect(within(grid.getByRole('row', { name: /aten::unknown/ })).getAllByTitle('why')).toHaveLength(2);
  expect(grid.queryByText('TFLOP/s')).toBeNull(); // until it is switched on
});

it('filters operators by the family of the work they launch', async () => {
  drawView(View, { ...golden.operators, families: ['matrix product', 'softmax'] });
  await pick('Family', 'matrix product');
  expect(decodeURIComponent(location.hash)).toContain('family=matrix product');
  fireEvent.click(screen.getByRole('button', { name: 'Clear filters' }));
  expect(location.hash).not.toContain('family');
});

it('shows what graphs replayed in place of an empty table', async () => {
  const replayed = [
    {
      operator: 'aten::mm',
      module: 'Net_0',
      lines: ['model.py:4'],
      how: 'capture',
      reason: null,
      kernels: 2,
      ns: 3e6,
      event: 7,
    },
    {
      operator: null,
      module: null,
      lines: [],
      how: null,
      reason: 'no capture',
      kernels: 1,
      ns: 1e6,
      event: 8,
    },
  ];
  drawView(View, { ...golden.operators, rows: [], replayed });
  const rows = within(screen.getByRole('grid')).getAllByRole('row');
  expect(rows.map(row => row.textContent)).toEqual([
    expect.stringContaining('Replayed operator'),
    expect.stringContaining('aten::mm'),
    expect.stringContaining('1.00 ms'),
  ]);
  expect(document.querySelector('[data-part=why]')?.textContent).toBe('4.00 ms in 3 replayed kernels');
  await pick('Phase', 'backward');
  expect(location.hash).toContain('phase=backward');
});
