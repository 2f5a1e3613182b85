import { fireEvent, screen, waitFor } from '@testing-library/react';
import { expect, it, vi } from 'vitest';
import golden from '../../../../tests/golden/payloads/diff.json';
import { readState } from '../../base/browser/host';
import { drawView, pick, serveGoldens } from '../../testing/view';
import View from '.';
import { barTableParams } from './select';

serveGoldens(golden);

const base = { run: 'base', worker: 'w', span: '1' };

it('compares both sides in total and by kernel', () => {
  drawView(View, golden.diff, { base });
  expect(screen.getByText(/GPU 0 busy \(any work\)/).closest('tr')!.textContent).toBe(
    'GPU 0 busy (any work)500 µs300 µs−200 µs −40%↓ faster',
  );
  expect(screen.getByText(/GPU 0 utilization \(kernels\)/).closest('tr')!.textContent).toContain(
    '−20 points',
  );
  fireEvent.click(screen.getByText('Kernels'));
  const row = screen.getByText(/^GEMM bf16 128x128/, { selector: '[role=row] *' }).closest('[role=row]')!;
  expect(row.textContent).toContain('−200 µs');
});

it('distinguishes the typical step of the headline from the mean', () => {
  const { base: before, candidate } = golden.diff;
  const payload = {
    ...golden.diff,
    step: { ...golden.diff.step, base_ns: 1_300_000, candidate_ns: 1_000_000, delta_ns: -300_000 },
    base: { ...before, typical_ns: 1_200_000 },
    candidate: { ...candidate, typical_ns: 900_000 },
  };
  drawView(View, payload, { base });
  const row = (name: string) => screen.getByText(name, { selector: 'td' }).closest('tr')!.textContent;
  expect(row('Typical step, as in the headline')).toContain('1.20 ms900 µs−300 µs −25%');
  expect(row('Mean step, all steps')).toContain('1.30 ms1.00 ms−300 µs');
  expect(row('Mean step, all steps')).not.toMatch(/faster|slower|unchanged|equal|inconclusive/);
});

it('does not call the average iteration of engines what the headline says', () => {
  const change = { ...golden.diff.step, base_ns: 40_000, candidate_ns: 30_000, delta_ns: -10_000 };
  const phase = { phase: 'decode', iterations: [10, 10], tokens: [80, 80], iteration: change };
  drawView(View, { ...golden.diff, serving: [{ ...phase, per_token: change }] }, { base });
  expect(screen.getByText('Average iteration of all phases', { selector: 'td' })).toBeTruthy();
  expect(screen.queryByText('Typical step, as in the headline')).toBeNull();
});

it('writes the verdicts below the bars as in the tables', async () => {
  const [first, ...others] = golden.diff.waterfalls;
  const bars = first!.bars
    .slice(0, 2)
    .map(bar => ({ ...bar, delta_ns: bar.delta_ns || 1000, verdict: 'cannot_tell' }));
  drawView(View, { ...golden.diff, waterfalls: [{ ...first, bars }, ...others] }, { base });
  expect((await screen.findAllByText('? inconclusive', { selector: 'text' })).length).toBe(2);
  expect(document.body.textContent).not.toContain('cannot_tell');
});

it('draws where the change comes from, and a pair of bars per part of the step', async () => {
  drawView(View, golden.diff, { base });
  expect(await screen.findByLabelText('Where the change comes from')).toBeTruthy();
  expect(document.querySelectorAll('[data-part=part-pair]')).toHaveLength(golden.diff.level.parts.length);
});

it('says that kernels of one side were not recorded on the other, and opens them where they are', () => {
  const [kernel] = golden.diff.kernels;
  const unknown = { ...kernel!.total, base_ns: null, candidate_ns: null, delta_ns: null, verdict: 'unknown' };
  const row = {
    ...kernel!,
    status: 'not_recorded',
    calls: { base: 2, candidate: null, delta_calls: null },
    total: { ...unknown, delta_ratio: null, low_ns: null, high_ns: null, q: null },
  };
  drawView(View, { ...golden.diff, kernels: [row] }, { base });
  fireEvent.click(screen.getByText('Kernels'));
  const shown = screen.getByTitle('Only one side recorded such events, so it may be neither new nor gone.');
  expect(shown.textContent).toBe('not recorded');
  expect(shown.closest('[role=row]')!.textContent).toContain('2.00 → –');
  fireEvent.doubleClick(shown.closest('[role=row]')!);
  expect(readState().run).toBe('base');
});

it('sets the smallest change that matters', async () => {
  drawView(View, golden.diff, { base });
  const minEffect = screen.getByRole('combobox', { name: 'Smallest change that matters' });
  expect(minEffect.textContent).toBe('2%');
  await pick('Smallest change that matters', '10%');
  expect(decodeURIComponent(location.href)).toContain('min_effect=0.1');
});

it('adds and removes recordings of a side, and swaps them with the sides', async () => {
  const spans = ['1', '2', '3'].map(name => ({ name }));
  const answers: Record<string, unknown> = {
    runs: {
      runs: [{ name: 'base' }, { name: 'run' }, { name: 'third' }].map(run => ({
        ...run,
        workers: 1,
        bytes: 1,
      })),
    },
    workers: { workers: [{ name: 'w', spans }] },
  };
  vi.stubGlobal('fetch', (address: URL | string) => {
    const path = new URL(address).pathname;
    const found = Object.entries(answers).find(([name]) => path.endsWith(name));
    return Promise.resolve(new Response(JSON.stringify(found?.[1] ?? {}), { status: found ? 200 : 404 }));
  });
  drawView(View, golden.diff, { base });
  const address = () => decodeURIComponent(location.href);
  fireEvent.click(await screen.findByText('add to base'));
  fireEvent.click(await screen.findByText('base · w · span 2'));
  expect(address()).toContain('base_also=[["base","w","2"]]');
  fireEvent.click(await screen.findByText('add to candidate'));
  fireEvent.click((await screen.findAllByText('third', { selector: '[role=option] *' })).at(-1)!);
  expect(address()).toMatch(/profiler\.also=\[\["third",null,null\]\]/);
  fireEvent.click(screen.getByText('Swap sides'));
  expect(address()).toContain('base_also=[["third",null,null]]');
  expect(address()).toMatch(/profiler\.also=\[\["base","w","2"\]\]/);
  fireEvent.click(screen.getByTitle('Remove this recording from the base'));
  expect(address()).not.toContain('base_also');
});

it('gives kernels the color of their family, and finds them by it', () => {
  drawView(View, golden.diff, { base, params: { table: 'kernels' } });
  const [kernel] = golden.diff.kernels;
  expect(screen.getAllByTitle(kernel!.family)[0]!.style.background).not.toBe('');
  fireEvent.change(screen.getByPlaceholderText(/^Filter/), { target: { value: kernel!.family } });
  expect(screen.getAllByTitle(kernel!.family).length).toBeGreaterThan(0);
});

it('opens the recordings and the rows that the waterfall counts, by keys, too', async () => {
  drawView(View, golden.diff, { base });
  fireEvent.keyDown(await screen.findByRole('link', { name: /^Kernel: / }), { key: 'Enter' });
  expect(readState()).toMatchObject({ table: 'kernels' });
  fireEvent.click(screen.getByRole('link', { name: /^Base: / }));
  expect(readState()).toMatchObject({ view: 'overview', ...base });
});

it('says of which bar the table shows the rows', async () => {
  drawView(View, golden.diff, { base, params: { table: 'kernels' } });
  const current = async (name: RegExp) =>
    (await screen.findByRole('link', { name })).getAttribute('aria-current');
  expect(await current(/^Kernel: /)).toBe('true');
  expect(await current(/^Runtime: /)).toBeNull();
});

it.each([
  ['kernel', true, { table: 'kernels' }],
  ['communication', true, { table: 'families', q: 'communication' }],
  ['memcpy', true, { table: 'families', q: 'memory' }],
  ['cpu_exec', true, { table: '' }],
  ['forward', true, { table: 'parts' }],
  ['device', true, { table: 'parts', time: 'device' }],
  ['kernel', false, { table: 'parts' }],
])('knows the table of the bar %s', (bar, hasDevice, table) => {
  expect(barTableParams(bar, hasDevice)).toEqual(table);
});

it('shows a part without parts on the timeline of the recording that has it', async () => {
  const [part] = golden.diff.level.parts;
  const leaf = (name: string, events: object) => ({
    ...part!,
    path: name,
    parts: 0,
    short_name: name,
    ...events,
  });
  const parts = [
    leaf('both', { candidate_event: 7, base_event: 3 }),
    leaf('gone', { candidate_event: null, base_event: 3 }),
    leaf('self', { candidate_event: null, base_event: null }),
  ];
  drawView(View, { ...golden.diff, level: { ...golden.diff.level, parts } }, { base });
  const pairs = () => [...document.querySelectorAll('[data-part=part-pair]')];
  await waitFor(() => expect(pairs()).toHaveLength(3));
  expect(pairs().map(pair => pair.getAttribute('role'))).toEqual(['button', 'button', 'img']);
  fireEvent.click(pairs()[0]!);
  expect(readState()).toMatchObject({ view: 'trace', run: 'run', event: '7' });
});

it('shows what only the base has in the base', async () => {
  const [part] = golden.diff.level.parts;
  const onlyInBase = { ...part!, path: '9', parts: 0, candidate_event: null, base_event: 3 };
  drawView(View, { ...golden.diff, level: { ...golden.diff.level, parts: [onlyInBase] } }, { base });
  await waitFor(() => expect(document.querySelectorAll('[data-part=part-pair]')).toHaveLength(1));
  fireEvent.keyDown(document.querySelector('[data-part=part-pair]')!, { key: 'Enter' });
  expect(readState()).toMatchObject({ view: 'trace', ...base, event: '3' });
});
