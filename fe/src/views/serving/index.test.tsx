import { fireEvent, screen, within } from '@testing-library/react';
import { expect, it } from 'vitest';
import golden from '../../../../tests/golden/payloads/serving.json';
import { drawView, serveGoldens } from '../../testing/view';
import { barsPath, iterationAt } from './select';
import View from '.';

serveGoldens(golden);

const columns = golden.serving.iterations;

it('shows rates, phases, costs, stalls, and why a figure is unknown', () => {
  drawView(View, golden.serving);
  expect(screen.getByText('Time to first token').parentElement!.textContent).toContain('unknown');
  expect(screen.getByText(/^Time to first token: /).textContent).toContain('--otlp-traces-endpoint');
  expect(screen.getByText('+ 1,000 prompt tokens').parentElement!.textContent).toContain('±');
  expect(screen.getAllByText('Scheduler', { selector: '[role=row] *' }).length).toBeGreaterThan(0);
});

it('shows the times of requests where they were recorded', () => {
  const { time_to_first_token_ns: _, ...reasons } = golden.serving.rates.reasons;
  const rates = {
    ...golden.serving.rates,
    time_to_first_token_ns: 74e6,
    time_to_first_token_p99_ns: 98e6,
    queue_median_ns: 55e6,
    queue_p99_ns: 81e6,
    reasons,
  };
  drawView(View, { ...golden.serving, rates });
  const figure = (title: string) => screen.getByText(title).parentElement!.textContent;
  expect(figure('Time to first token')).toBe('Time to first token74.0 msmedian; p99 98.0 ms');
  expect(figure('Time in queue')).toBe('Time in queue55.0 msmedian; p99 81.0 ms');
});

it('shows the kernels of an iteration by origin, and why one is unknown', async () => {
  drawView(View, golden.serving);
  const table = (await screen.findByText('Operator')).closest('table')!;
  expect(table.textContent).toContain(golden['serving/origins'].rows[0]!.reason);
  expect(table.textContent).toContain(golden['serving/origins'].rows[0]!.family);
});

it('names the slowest rank', async () => {
  drawView(View, golden.serving);
  const row = (await screen.findByText('slowest')).closest('tr')!;
  expect(row.textContent).toMatch(/^rank 1 slowest/);
});

it('shows an iteration alone that is chosen with the keys', async () => {
  drawView(View, golden.serving);
  const chart = await screen.findByRole('application', { name: /^Iterations/ });
  fireEvent.keyDown(chart, { key: 'ArrowRight' });
  fireEvent.keyDown(chart, { key: 'Enter' });
  expect(await screen.findByRole('heading', { name: /^Where iteration 1 goes/ })).toBeTruthy();
  fireEvent.keyDown(chart, { key: 'Escape' });
  expect(
    await screen.findByRole('heading', { name: /^Where an average decode iteration goes/ }),
  ).toBeTruthy();
});

it('finds the iteration at a time', () => {
  expect(iterationAt(columns, columns.start_ns[3]! + 1)).toBe(3);
  expect(iterationAt(columns, -1)).toBe(0);
});

it('draws no more than a bar for each pixel', () => {
  const count = 100_000;
  const many = {
    ...columns,
    start_ns: Array.from({ length: count }, (_, i) => 1000 * i),
    duration_ns: Array.from({ length: count }, (_, i) => (i === 777 ? 9000 : 1000)),
    phase: Array.from({ length: count }, () => 'decode'),
  };
  const path = barsPath(
    many,
    'decode',
    ns => (ns * 500) / (1000 * count),
    ns => 100 - ns / 100,
  );
  expect(path.match(/M/g)!.length).toBeLessThanOrEqual(501);
  expect(path).toContain('V10.0');
});

it('chooses a stall with the keys and opens it with Enter, which sorts on a title', async () => {
  drawView(View, golden.serving);
  const stalls = await screen.findByRole('grid', { name: 'serving-stalls' });
  fireEvent.keyDown(stalls, { key: 'ArrowDown' });
  expect(within(stalls).getByRole('row', { selected: true }).getAttribute('aria-rowindex')).toBe('2');
  fireEvent.keyDown(within(stalls).getByRole('button', { name: 'Cause' }), { key: 'Enter' });
  expect(location.hash).not.toContain('view=trace');
  fireEvent.keyDown(stalls, { key: 'Enter' });
  expect(location.hash).toContain('view=trace');
});
