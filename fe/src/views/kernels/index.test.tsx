import { fireEvent, screen, waitFor, within } from '@testing-library/react';
import { describe, expect, it } from 'vitest';
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
    headline: [{ text: 'The engines are busy for 53% of the steps.', link: null }],
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
  expect(screen.getByText('The engines are busy for 53% of the steps.')).toBeTruthy();
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

describe('a kernel from several places', () => {
  const place = { operator: 'aten::mm', module: null, how: 'capture', reason: null, kernels: 2, ns: 5_000 };
  const places = [4, 9].map(line => ({ ...place, lines: [`model.py:${line}`], event: line }));
  serveGoldens({ ...golden, 'kernels/origins': { name: 'gemm', reason: null, rows: places } });

  it('says how many, and lists them', async () => {
    const { origin: _, ...reasons } = golden.kernels.reasons as Record<string, unknown>;
    const row = { ...golden.kernels.rows[0]!, origin_operator: 'aten::mm', origin_places: 3 };
    drawView(View, { ...golden.kernels, reasons, rows: [row] });
    fireEvent.click(screen.getByText('aten::mm · 3 places'));
    await screen.findByText('model.py:9');
    const listed = screen.getAllByRole('listitem').map(item => item.textContent);
    expect(listed).toContain('model.py:4 aten::mm, 5.00 µs in 2 kernels');
  });
});

it('leads from a row to its slice in one click', () => {
  drawView(View, golden.kernels);
  const { event } = golden.kernels.rows[0]!;
  fireEvent.click(screen.getAllByRole('button', { name: 'Show the first on the timeline' })[0]!);
  const { view, ...state } = readState();
  expect(view).toBe('trace');
  expect(state).toEqual({ run: 'run', event: String(event) });
});

const named = (names: string[]) =>
  names.map((name, i) => ({
    ...golden.kernels.rows[0]!,
    name,
    short_name: name,
    total_ns: 1000 - i,
    tc_used: [true, false, null][i % 3]!,
  }));

it('tells names that begin alike by their ends, and says them whole to who does not see them', async () => {
  const begin =
    'GEMM bf16 256x128 nn with a very long description of its tiles and of what it adds, flag by flag, '.repeat(
      2,
    );
  const rows = named([`${begin}align1`, `${begin}align8`]);
  drawView(View, { ...golden.kernels, rows });
  const lines = screen.getAllByRole('button', { name: /^GEMM bf16 256x128 nn with .*align[18] ?\d/ });
  expect(lines).toHaveLength(2);
  await waitFor(() => expect(lines[0]!.querySelector('.clip')!.textContent).toContain('…'));
  const seen = lines.map(line => line.querySelector('.clip')!.textContent);
  expect(new Set(seen).size).toBe(2);
  seen.forEach(text => expect(text.length).toBeLessThan(160));
  // The table cuts what both have in common, and leaves the name whole to who copies it.
  const cells = screen
    .getByRole('grid', { name: 'kernels' })
    .querySelectorAll(`[title$="align1"], [title$="align8"]`);
  expect([...cells].map(cell => cell.querySelector('[aria-hidden] > :last-child')!.textContent)).toEqual([
    '1',
    '8',
  ]);
  expect(cells[0]!.querySelector('.visually-hidden')!.textContent).toBe(`${begin}align1`);
});

it('lists the others of a ring, and each of them opens its row', async () => {
  drawView(View, { ...golden.kernels, rows: named(['a', 'b', 'c', 'd', 'e', 'f', 'g']) });
  fireEvent.click(screen.getByRole('button', { name: /^2 others/ }));
  const others = within((await screen.findByRole('dialog')) as HTMLElement);
  expect((await others.findAllByRole('button')).map(line => line.textContent![0])).toEqual(['f', 'g']);
  fireEvent.click(others.getByRole('button', { name: /^g/ }));
  expect(readState().select).toBe('g');
  fireEvent.click(document.querySelector('[aria-label="Kernel time"] path')!);
  expect(readState().select).toBe('a');
});

it('opens the rows that a part of the ring of Tensor Cores counts, and the copies on the timeline', () => {
  const copy = { name: 'Memcpy HtoD', calls: 2, bytes: 4, total_ns: 10, mean_ns: 5, max_ns: 6, bandwidth: 1 };
  drawView(View, {
    ...golden.kernels,
    rows: named(['a', 'b', 'c', 'd']),
    tensor_cores: { used_ns: 1997, not_used_ns: 999, unknown_ns: 998 },
    memory_operations: [{ ...copy, event: 3 }],
  });
  const grid = within(screen.getByRole('grid', { name: 'kernels' }));
  const listed = () =>
    grid
      .getAllByRole('row')
      .slice(1)
      .map(row => row.textContent![0]);
  expect(listed()).toEqual(['a', 'b', 'c', 'd']);
  for (const [part, rows] of [
    [/^used/, ['a', 'd']],
    [/^not used/, ['b']],
    [/^not shown by the name/, ['c']],
  ] as const) {
    fireEvent.click(screen.getByRole('button', { name: part }));
    expect(listed()).toEqual(rows);
  }
  fireEvent.click(screen.getByRole('button', { name: /^not shown by the name/ }));
  expect(listed()).toEqual(['a', 'b', 'c', 'd']);
  fireEvent.click(screen.getByRole('button', { name: /^Memcpy HtoD/ }));
  expect(readState()).toMatchObject({ view: 'trace', find: 'Memcpy HtoD' });
});
