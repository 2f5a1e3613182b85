import { cleanup, fireEvent, screen, within } from '@testing-library/react';
import { expect, it } from 'vitest';
import golden from '../../../../tests/golden/payloads/distributed.json';
import { readState } from '../../base/browser/host';
import { drawView, pick, serveGoldens } from '../../testing/view';
import View from '.';

serveGoldens(golden);

it('names the straggler, and what it does before it arrives', () => {
  drawView(View, golden.distributed);
  expect(screen.getByRole('heading', { level: 1 }).textContent).toContain('Rank 1 is a straggler');
  const straggler = document.querySelector('[data-part=straggler-row][aria-current]')!;
  expect(straggler.textContent).toContain('rank 1100%5.00 ms');
  expect(document.querySelector('[data-part=while-row]')!.textContent).toContain('prepare_batch');
  expect(document.querySelectorAll('[data-part=rank-bar]')).toHaveLength(3);
});

it('lets a rank be picked only where another one is shown', () => {
  drawView(View, golden.distributed);
  const pick = () => document.querySelector('[data-part=straggler-row] button[title=rank1]');
  const { meanwhile } = golden.distributed;
  expect(meanwhile).toHaveLength(1);
  expect(pick()).toBeNull();
  cleanup();
  drawView(View, {
    ...golden.distributed,
    meanwhile: [{ ...meanwhile[0]!, worker: 'another' }, ...meanwhile],
  });
  fireEvent.click(pick()!);
  expect(document.querySelector('[data-part=straggler-row][aria-current]')!.textContent).toContain('rank 1');
});

it('says that a map has no values, and names no missing steps', () => {
  drawView(View, { ...golden.distributed, overview: [], heat_map: null });
  const map = screen.getByRole('figure', { name: 'Computation by rank and step' });
  expect(map.textContent).toBe('No values to show.');
  expect(document.body.textContent).not.toContain('undefined');
});

it('names a row by its worker if ranks are unknown: a name may be a process id', async () => {
  const nameless = <R extends { rank: number }>(rows: R[]) =>
    rows.map(row => ({ ...(row as object), rank: null, worker: String(77 + row.rank) }));
  const { distributed } = golden;
  drawView(View, {
    ...distributed,
    ranks: nameless(distributed.ranks),
    stragglers: nameless(distributed.stragglers),
    collectives: nameless(distributed.collectives),
  });
  const table = await screen.findByRole('columnheader', { name: /^Worker/ });
  expect(table).toBeTruthy();
  expect(screen.queryByRole('columnheader', { name: /^Rank$/ })).toBeNull();
  expect(document.querySelector('[data-part=straggler-row]')!.textContent).toMatch(/^Worker/);
  expect(screen.getByText('By worker')).toBeTruthy();
  expect(screen.getByRole('figure', { name: 'Computation by worker and step' })).toBeTruthy();
  expect(document.body.textContent).not.toMatch(/rank 77/i);
});

it('names a row by its rank if all are known', async () => {
  drawView(View, golden.distributed);
  expect(await screen.findByRole('columnheader', { name: /^Rank/ })).toBeTruthy();
  expect(screen.queryByRole('columnheader', { name: /^Worker/ })).toBeNull();
});

it('says in a full sentence why no straggler is named', () => {
  const reasons = { stragglers: [{ text: 'no collective tells', link: null }] };
  drawView(View, { ...golden.distributed, stragglers: [], reasons });
  expect(screen.getByText('No collective tells.')).toBeTruthy();
});

it('lists all collectives page by page', async () => {
  drawView(View, golden.distributed);
  fireEvent.click(screen.getByText('All collectives'));
  expect(
    (await screen.findAllByText('nccl:all_reduce', { selector: '[role=row] button span' })).length,
  ).toBeGreaterThan(1);
});

/** A job so large that its parts come page by page. */
const LARGE = {
  ...golden.distributed,
  ranks: [],
  nodes: [],
  overview: [],
  averages: [],
  waiting: [],
  average_waiting: [],
  collectives: [],
  groups: [],
  families: [],
  heat_map: null,
  rank_count: 10_000,
};

it.each([
  ['step', 'Step'],
  ['iteration', 'Iteration'],
])('filters collectives by %s, and names it so in the columns of a large job', async (noun, label) => {
  drawView(View, golden.distributed, { noun, params: { table: 'collectives' } });
  await pick(label, golden.distributed.steps[1]!);
  expect(readState()).toMatchObject({ step: golden.distributed.steps[1] });
  cleanup();
  drawView(View, LARGE, { noun, params: { table: 'ranks' } });
  expect(await screen.findByRole('columnheader', { name: label })).toBeTruthy();
});

it('draws a job of thousands of ranks from its parts, page by page', async () => {
  drawView(View, LARGE);
  expect(screen.getByText(/10,000 workers/)).toBeTruthy();
  expect(await screen.findByRole('figure', { name: 'Lateness by rank and step' })).toBeTruthy();
  const found = document.querySelector<HTMLElement>('[data-part=found-rank]')!;
  expect(within(found).getByText('Costs the others').nextSibling!.textContent).toBe('5.00 ms');
  expect(document.querySelectorAll('[data-part=spread]')).toHaveLength(5);
  expect(document.querySelectorAll('[data-part=spread] [data-part=own]')).toHaveLength(5);
  expect(document.querySelector('[data-part=group-families]')!.textContent).toContain('1 × 2');
});

it('says in a cell of the lateness map what its time is relative to', async () => {
  drawView(View, golden.distributed);
  const map = within(await screen.findByRole('figure', { name: 'How late each rank arrives, per step' }));
  expect(map.getAllByTitle(/^rank 1, step .*: [\d.]+ [mµn]?s after the median rank$/).length).toBeGreaterThan(
    0,
  );
});

it('opens the step of a rank that a cell of a map counts', async () => {
  drawView(View, golden.distributed);
  const map = within(await screen.findByRole('figure', { name: 'Exposed communication by rank and step' }));
  const [, second] = new Set(golden.distributed.overview.map(row => row.step));
  fireEvent.click(await map.findByTitle(new RegExp(`^rank 1, step ${second}: `)));
  expect(readState()).toMatchObject({ view: 'overview', worker: 'rank1', step: second });
});
