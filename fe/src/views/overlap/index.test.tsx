import { fireEvent, screen, within } from '@testing-library/react';
import { expect, it, vi } from 'vitest';
import golden from '../../../../tests/golden/payloads/overlap.json';
import { drawView, serveGoldens } from '../../testing/view';
import type { OverlapPayload } from '../../api/types';
import { preferTraces } from './select';
import View from '.';

serveGoldens({
  ...golden,
});

it('answers first, and names the rank with the most exposed communication', () => {
  drawView(View, golden.overlap);
  expect(screen.getByRole('heading', { level: 1 }).textContent).toMatch(
    /^Exposed communication takes .* of an average iteration/,
  );
  expect(screen.getByText(/overlap_ratio/)).toBeTruthy();
});

it('says how many ranks are still to be read, and nothing once all are', () => {
  const { overlap } = golden;
  const [first, ...others] = overlap.ranks;
  const waits = others.map(each => ({ ...each, state: 'loading' as const }));
  const reading = [{ text: 'some are still being read', link: null }];
  const { unmount } = drawView(View, { ...overlap, ranks: [first!, ...waits], reading });
  const status = screen.getByRole('status');
  expect(status.textContent).toContain('some are still being read');
  expect((within(status).getByRole('progressbar') as HTMLProgressElement).value).toBe(1);
  unmount();
  drawView(View, overlap);
  expect(screen.queryByRole('progressbar')).toBeNull();
});

it('opens the iteration of a cell on the timeline', async () => {
  drawView(View, golden.overlap);
  const map = screen.getByRole('figure', { name: 'Exposed communication by rank and iteration' });
  const [cell] = await within(map).findAllByRole('button');
  fireEvent.click(cell!);
  expect(location.hash).toContain('view=trace');
  expect(location.hash).toContain('worker=rank0');
});

it('prefers a trace of the same process in another run, if that run is listed', () => {
  const { overlap } = golden;
  const traced = 'trace?run=traces&worker=rank0&span=1&at=5-9';
  const payload = {
    ...overlap,
    traced_links: overlap.links.map((row, i) => row.map((_, j) => (i === 0 && j === 1 ? traced : null))),
    ranks: overlap.ranks.map(each => ({ ...each, traced_link: traced })),
  } as OverlapPayload;
  const shown = preferTraces(payload, ['job', 'traces']);
  expect(shown.links[0]!.slice(0, 2)).toEqual([overlap.links[0]![0], traced]);
  expect(shown.ranks[0]!.link).toBe(traced);
  expect(preferTraces(payload, ['job']).links).toEqual(overlap.links);
});

it('shows what was recorded beside what the ranges give, with the reason of a difference', () => {
  drawView(View, golden.overlap);
  const table = screen.getByRole('table', { name: 'Recorded and recomputed totals' });
  const row = within(table).getByText('Stream compute').closest('tr')!;
  expect(row.textContent).toContain('the recorder ends both with the first');
  expect(within(table).getByText('Stream aux').closest('tr')!.textContent).not.toContain('recorder');
});

it('draws the recorded metrics over the steps, and opens the iteration of the chosen step', () => {
  const width = vi.spyOn(HTMLElement.prototype, 'clientWidth', 'get').mockReturnValue(900);
  drawView(View, golden.overlap);
  const chart = screen.getByRole('slider', {
    name: /^Overlap \/ computation, .*Loss, Learning rate over 4 steps$/,
  });
  width.mockRestore();
  fireEvent.keyDown(chart, { key: 'ArrowRight' });
  fireEvent.keyDown(chart, { key: 'ArrowRight' });
  expect(chart.getAttribute('aria-valuetext')).toMatch(/^step 1: .*Loss 0\.5, Learning rate 0\.001$/);
  fireEvent.keyDown(chart, { key: 'Enter' });
  expect(location.hash).toContain('view=trace');
  expect(location.hash).toContain('at=500000-');
});

it('says what coincides with dips of overlap, and how sure that is', () => {
  const signal = {
    signal: 'clock',
    title: 'Clock',
    unusual: 'below 95%',
    unit: 'MHz',
    dip_value: 1300,
    other_value: 2100,
  };
  const counts = {
    dips_with: 5,
    dips: 5,
    others_with: 1,
    others: 35,
    chance: 0.00001,
    stretches: 5,
    strength: 'strong',
  };
  const headline = [{ text: 'Strong evidence of throttling.', link: null }];
  const dips = { headline, iterations: 40, dips: 5, signals: [{ ...signal, ...counts }] };
  drawView(View, { ...golden.overlap, dips });
  expect(screen.getByText('Strong evidence of throttling.')).toBeTruthy();
  const table = screen.getByRole('table', { name: 'Readings in dips and elsewhere' });
  expect(within(table).getByText('Clock').closest('tr')!.textContent).toBe(
    'Clock1,300 MHz2,100 MHzbelow 95%5 of 51 of 35below 0.01%strong',
  );
});
