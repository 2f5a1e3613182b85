import { cleanup, fireEvent, screen, waitFor, within } from '@testing-library/react';
import { describe, expect, it, vi } from 'vitest';
import golden from '../../../../tests/golden/payloads/trace.json';
import { drawnText, drawView, serveGoldens } from '../../testing/view';
import View from '.';

serveGoldens(golden);

it('names the tracks and its keys', () => {
  drawView(View, golden.trace);
  const names = [...document.querySelectorAll('[data-part=track-label]')].map(label => label.textContent);
  expect(names.some(name => name?.includes('thread 1'))).toBe(true);
  expect(screen.getByText(/Click a slice for details/)).toBeTruthy();
});

it('shows the details of the selected slice and its links', async () => {
  drawView(View, golden.trace, { params: { event: '2' } });
  const details = await screen.findByRole('heading', { level: 2, name: /aten::mm/ });
  const panel = details.closest<HTMLElement>('[data-part=event-details]')!;
  expect(within(panel).getByText('100 µs')).toBeTruthy();
  expect(document.querySelector('img')).toBeNull();
});

it('shows why a device is idle at a moment, the cause, and a link to all idle time', async () => {
  drawView(View, golden.trace, { params: { moment: '0:0-3000000:operator' } });
  const details = await screen.findByRole('heading', { level: 2, name: 'Operators' });
  const panel = within(details.closest<HTMLElement>('[data-part=moment-details]')!);
  const found = golden['trace/moment'];
  expect(drawnText(panel.getByText(/GPU 0 is idle/))).toContain(found.headline[0]!.text);
  expect(panel.getByText('Cause').parentElement!.textContent).toContain(found.subject.short_name);
  expect(panel.getByRole('heading', { name: 'Entire gap' })).toBeTruthy();
  fireEvent.click(panel.getByRole('button', { name: /All idle time/ }));
  expect(decodeURIComponent(location.hash)).toContain('select=operator/');
});

it.each([
  ['event', '2', 'step', 'Step'],
  ['event', '2', 'iteration', 'Iteration'],
  ['moment', '0:0-3000000:operator', 'step', 'Step'],
  ['moment', '0:0-3000000:operator', 'iteration', 'Iteration'],
])('says of a selected %s (%s) in which %s it is', async (kind, selected, noun, label) => {
  drawView(View, golden.trace, { noun, params: { [kind]: selected } });
  const fact = await screen.findByText(label, { selector: 'dt' });
  expect(fact.nextSibling!.textContent).toBe(golden[`trace/${kind as 'event' | 'moment'}`].step);
});

const long = { ...golden, 'trace/path': { ...golden['trace/path'], more: 1234 } };

describe('with a path of more segments than are highlighted', () => {
  serveGoldens(long);
  it('says how many more there are', async () => {
    drawView(View, golden.trace, { params: { path: 'true' } });
    expect(await screen.findByText('1,234 more path segments when zoomed in')).toBeTruthy();
  });
});

it('marks the search hits of the address on the strip, and shows their number', async () => {
  drawView(View, golden.trace, { params: { find: 'sgemm' } });
  const hits = golden['trace/hits'].track.length;
  await waitFor(() => expect(document.querySelector(`[data-ticks="${hits}"]`)).not.toBeNull());
  expect(screen.getByPlaceholderText<HTMLInputElement>('Find slices and kernels').value).toBe('sgemm');
  expect(await screen.findByText(new RegExp(`(^| of )${golden['trace/search'].hits}$`))).toBeTruthy();
});

it('sums up a time range', async () => {
  drawView(View, golden.trace, { params: { area: '0-3000000' } });
  expect(await screen.findByRole('heading', { name: /^Selected 3\.00 ms/ })).toBeTruthy();
});

it('remembers where the details are docked and their size', async () => {
  drawView(View, golden.trace, { params: { area: '0-3000000' } });
  await screen.findByRole('heading', { name: /^Selected/ });
  const dock = () => document.querySelector<HTMLElement>('[data-part=dock]')!;
  expect(dock().dataset.side).toBe('below');
  fireEvent.click(screen.getByRole('button', { name: 'Dock on the right' }));
  expect(dock().dataset.side).toBe('right');
  vi.spyOn(HTMLElement.prototype, 'getBoundingClientRect').mockReturnValue(new DOMRect(0, 0, 1000, 600));
  const edge = screen.getByRole('separator', { name: 'Size of the details panel' });
  const before = Number(edge.getAttribute('aria-valuenow'));
  fireEvent.keyDown(edge, { key: 'ArrowLeft' });
  expect(Number(edge.getAttribute('aria-valuenow'))).toBe(before + 20);
  cleanup();
  drawView(View, golden.trace, { params: { area: '0-3000000' } });
  await screen.findByRole('heading', { name: /^Selected/ });
  expect(dock().dataset.side).toBe('right');
  expect(screen.getByRole('separator').getAttribute('aria-valuenow')).toBe(String(before + 20));
});

it('sums up the tracks of one kind', async () => {
  const requests: URL[] = [];
  const serve = fetch;
  vi.stubGlobal('fetch', (address: string) => {
    requests.push(new URL(address));
    return serve(address);
  });
  drawView(View, golden.trace, { params: { area: '0-3000000', sums: 'counter' } });
  const grid = await screen.findByRole('grid', { name: 'selected counters' });
  const { series_track: series } = golden['trace/counters'];
  expect(within(grid).getAllByRole('row')).toHaveLength(series.length + 1);
  fireEvent.click(screen.getByRole('radio', { name: 'Kernels' }));
  expect(await screen.findByRole('grid', { name: 'selection' })).toBeTruthy();
  expect(location.hash).toContain('sums=stream');
  const streams = golden.trace.tracks.filter(track => track.kind === 'stream').map(track => track.id);
  const tracks = requests
    .filter(url => url.pathname.endsWith('selection'))
    .map(url => url.searchParams.get('tracks'));
  expect(tracks.at(-1)).toBe(String(streams));
});

it('takes no room for details while nothing is selected', () => {
  drawView(View, golden.trace);
  expect(document.querySelector('[data-part=dock]')).toBeNull();
  expect(screen.queryByRole('separator')).toBeNull();
});

it('sums up a time range by kernel family, and filters by one', async () => {
  drawView(View, golden.trace, { params: { area: '0-3000000' } });
  const { families, rows } = golden['trace/selection'];
  const { family } = families[0]!;
  const grid = await screen.findByRole('grid', { name: 'selection' });
  expect(within(grid).getAllByRole('row')).toHaveLength(rows.length + 1);
  fireEvent.click(screen.getByRole('button', { name: new RegExp(`^${family} `) }));
  const ofFamily = rows.filter(row => row.family === family);
  expect(within(grid).getAllByRole('row')).toHaveLength(ofFamily.length + 1);
});

describe('colored by family', () => {
  serveGoldens({ ...golden, 'trace/colors': { by: 'family', texts: ['none', 'matrix product', 'memory'] } });
  it('finds the slices of a family from the legend', async () => {
    drawView(View, golden.trace, { params: { color: 'family' } });
    fireEvent.click(await screen.findByRole('button', { name: 'matrix product' }));
    expect(screen.queryByRole('button', { name: 'none' })).toBeNull();
    expect(location.hash).toContain('find=family');
    expect(decodeURIComponent(location.hash)).toContain('family:matrix');
  });
});
