import { fireEvent, screen, within } from '@testing-library/react';
import { expect, it } from 'vitest';
import golden from '../../../../tests/golden/payloads/kernels.json';
import { readState } from '../../base/browser/host';
import { drawView, serveGoldens } from '../../testing/view';
import View from '.';

serveGoldens(golden);

it('shows the kernels, and what is known of the one that is chosen', async () => {
  drawView(View, golden.kernels);
  const row = within(screen.getByRole('grid', { name: 'kernels' })).getByRole('row', {
    name: /GEMM bf16 128x128/,
  });
  expect(row.textContent).toContain('500 µs');
  fireEvent.click(row);
  expect(await screen.findByText('median 500 µs')).toBeTruthy();
  expect(screen.getByText(/sum: 1\.50 ms in 3 launches/)).toBeTruthy();
});

it('shows the engines of a card, and the graphs that ran on them', () => {
  const engines = {
    headline: [{ text: 'The engines work for 53% of the steps.', link: null }],
    bound: null,
    classes: [{ name: 'MME', engines: 2, busy_ns: 51_000, share: 0.17 }],
    recipes: Array.from({ length: 14 }, (_, id) => ({
      id,
      name: id === 0 ? '' : `graph_${id}`,
      nodes: 7,
      busy_ns: 1_000,
      event: id,
    })),
  };
  drawView(View, { ...golden.kernels, engines });
  expect(screen.getByText('The engines work for 53% of the steps.')).toBeTruthy();
  expect(screen.getByRole('table', { name: 'Engines by class' }).textContent).toContain('MME251.0 µs17%');
  const recipes = within(screen.getByRole('table', { name: 'Recipes' }));
  expect(recipes.getAllByRole('button')).toHaveLength(12);
  expect(recipes.getByRole('button', { name: 'recipe 0' })).toBeTruthy();
  expect(recipes.getByText('and 2 with less time')).toBeTruthy();
});

it('has a row a family, which names neither a kernel nor its family twice', () => {
  const { rows } = golden.kernels;
  const family = { ...rows[0]!, name: rows[0]!.family, short_name: rows[0]!.family };
  drawView(View, { ...golden.kernels, group_by: 'family', rows: [family] });
  const grid = within(screen.getByRole('grid', { name: 'kernels' }));
  expect(grid.getAllByRole('columnheader').filter(each => /Family/.test(each.textContent))).toHaveLength(1);
  expect(grid.queryByRole('columnheader', { name: /Kernel/ })).toBeNull();
  expect(screen.getByText(/of 1 family/)).toBeTruthy();
});

it('leads from a row to its slice in one click', () => {
  drawView(View, golden.kernels);
  const { event } = golden.kernels.rows[0]!;
  fireEvent.click(screen.getAllByRole('button', { name: 'Show the first on the timeline' })[0]!);
  const { view, ...state } = readState();
  expect(view).toBe('trace');
  expect(state).toEqual({ run: 'run', event: String(event) });
});
