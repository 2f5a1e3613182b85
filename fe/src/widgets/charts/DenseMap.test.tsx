import { fireEvent, screen, waitFor } from '@testing-library/react';
import { expect, it, vi } from 'vitest';
import { draw, serveGoldens } from '../../testing/view';
import { HeatMap } from './HeatMap';

serveGoldens({});

const columns = Array.from({ length: 50 }, (_, i) => String(i));
const rows = ['rank 0', 'rank 1', 'rank 2'];
const values = rows.map((_, row) => columns.map((_, column) => (row === 2 ? null : 100 * row + column)));

const map = {
  ...{ title: 'Late', rows, columns, values, max: 149, color: '--c-late' },
  format: (value: number) => `${value} ns`,
};

it('moves between cells with the arrow keys, announces each, and opens the current one with Enter', async () => {
  const onPick = vi.fn();
  draw(<HeatMap {...map} highlightedRows={new Set([1])} onPick={onPick} />);
  const keys = await waitFor(() => screen.getByRole('application', { name: /^Late: .*Enter opens one$/ }));
  const press = (key: string) => fireEvent.keyDown(keys, { key });
  fireEvent.focus(keys);
  const status = screen.getByRole('status');
  expect(status.textContent).toBe('rank 1, step 0: 100 ns');
  press('ArrowRight');
  press('ArrowRight');
  press('ArrowUp');
  expect(status.textContent).toBe('rank 0, step 2: 2 ns');
  press('ArrowUp');
  press('ArrowLeft');
  expect(status.textContent).toBe('rank 0, step 1: 1 ns');
  press('End');
  press('ArrowDown');
  press('Enter');
  expect(onPick).toHaveBeenLastCalledWith(1, 49);
  press('ArrowDown');
  press('ArrowDown');
  press('Home');
  expect(status.textContent).toBe('rank 2, step 0: unknown');
  press(' ');
  expect(onPick).toHaveBeenLastCalledWith(2, 0);
  fireEvent.blur(keys);
  expect(status.textContent).toContain('steps 0 to 49');
});

it('selects columns with Shift and the arrow keys, like a drag', async () => {
  const [onPick, onBrush] = [vi.fn(), vi.fn()];
  draw(<HeatMap {...map} highlightedColumn={10} onPick={onPick} onBrush={onBrush} />);
  const keys = await waitFor(() => screen.getByRole('application', { name: /Shift\+arrow/ }));
  fireEvent.focus(keys);
  fireEvent.keyDown(keys, { key: 'ArrowLeft', shiftKey: true });
  fireEvent.keyDown(keys, { key: 'ArrowLeft', shiftKey: true });
  expect(screen.getByRole('status').textContent).toBe('steps 8 to 10');
  fireEvent.keyDown(keys, { key: 'Enter' });
  expect(onBrush.mock.calls).toEqual([[8, 10]]);
  fireEvent.keyDown(keys, { key: 'ArrowLeft', shiftKey: true });
  fireEvent.keyDown(keys, { key: 'Escape' });
  fireEvent.keyDown(keys, { key: 'Enter' });
  expect(onBrush).toHaveBeenCalledTimes(1);
  expect(onPick.mock.calls).toEqual([[0, 7]]);
});
