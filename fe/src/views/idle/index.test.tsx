import { act, fireEvent, screen, within } from '@testing-library/react';
import { expect, it } from 'vitest';
import golden from '../../../../tests/golden/payloads/idle.json';
import type { IdlePayload } from '../../api/types';
import { drawnText, drawView, serveGoldens, textOf } from '../../testing/view';
import { splitExposed } from './IdleBar';
import { causeRows, buildIdleFlame, onTimeline } from './select';
import View from '.';

serveGoldens(golden);

const payload = golden.idle as unknown as IdlePayload;

it('names the main cause of idle time and shows every cause of an average step', async () => {
  drawView(View, golden.idle);
  expect(drawnText(screen.getByRole('heading', { level: 1 }))).toBe(
    'GPU 0 is idle for 50% of an average step (500 µs of 1.00 ms), 330 µs of it waiting for data loading.',
  );
  const table = within(screen.getByRole('treegrid', { name: 'idle' }));
  const row = table.getAllByRole('row', { name: /Data loading/ })[0]!;
  expect(row.textContent).toContain('caught up');
  expect(await screen.findByRole('table', { name: 'Launch calls' })).toBeTruthy();
});

it('puts what limits the numbers behind a disclosure that is closed at first', () => {
  drawView(View, golden.idle);
  const limits = document.querySelector<HTMLDetailsElement>('[data-part=how-we-know]')!;
  expect(limits.open).toBe(false);
  expect(limits.querySelector('summary')!.textContent).toMatch(
    /^How we know · [\d.]+% of device work explained$/,
  );
  expect(limits.querySelector('p')!.textContent).toBe(textOf(golden.idle.limits));
});

it('splits exposed communication by awaited rank once the other ranks are read', async () => {
  const job = golden['idle/ranks'];
  const alone = { ...job, beside: [], communication: null, waits_for: [] };
  drawView(View, alone);
  expect(await screen.findByText(/of exposed communication/)).toBeTruthy();
  const late = job.waits_for[0]!;
  const parts = splitExposed(job as unknown as IdlePayload, job.counted);
  expect(parts[0]!.slice(1, 3)).toEqual(['Exposed transfer', job.communication.transfer_ns]);
  expect(parts[1]!.slice(1, 3)).toEqual([`Waits for rank ${late.rank}`, late.waiting_ns]);
  expect(parts.reduce((sum, [, , ns]) => sum + ns, 0)).toBeCloseTo(
    job.exposed_communication_ns / job.counted,
  );
  expect(splitExposed(alone as unknown as IdlePayload, job.counted)).toHaveLength(1);
});

it('keeps rows as they were unfolded when a later answer replaces the first', async () => {
  const job = golden['idle/ranks'];
  drawView(View, { ...job, beside: [], communication: null, waits_for: [] });
  const unfolded = () =>
    within(screen.getByRole('treegrid', { name: 'idle' }))
      .getAllByRole('row')
      .flatMap(row => (row.getAttribute('aria-expanded') === 'true' ? [row.textContent] : []));
  const first = unfolded();
  expect(first).toHaveLength(1);
  expect(await screen.findByText(/of exposed communication/)).toBeTruthy();
  // The library folds rows in a task after the answer, so wait for what comes after that.
  await act(() => new Promise(resolve => requestAnimationFrame(resolve)));
  expect(unfolded()).toEqual(first);
});

it('names times per step only if there are several steps', () => {
  const { unmount } = drawView(View, golden.idle);
  expect(screen.getByRole('columnheader', { name: /Time per step/ })).toBeTruthy();
  expect(screen.getByText(/of idle time per step$/)).toBeTruthy();
  unmount();
  drawView(View, { ...golden.idle, explanation: [], counted: 1, steps_recorded: false });
  expect(screen.queryByText(/per step/)).toBeNull();
  expect(screen.getByText(/of idle time$/)).toBeTruthy();
});

it('opens the gaps of a row, and a gap on the timeline', async () => {
  drawView(View, golden.idle);
  const table = within(screen.getByRole('treegrid', { name: 'idle' }));
  fireEvent.click(table.getAllByRole('row', { name: /Operators/ })[0]!);
  const gaps = await screen.findByRole('complementary', { name: 'Gaps of Operators' });
  const first = golden['idle/gaps'].rows[0]!;
  fireEvent.click((await within(gaps).findAllByRole('button', { name: /µs|ms|ns/ }))[0]!);
  expect(decodeURIComponent(location.hash)).toContain(`moment=${payload.device}:${first.begin_ns}&`);
  expect(decodeURIComponent(location.hash)).toContain('view=trace');
});

it('sums the rows of a cause per step', () => {
  const rows = causeRows(payload);
  const steps = payload.counted;
  expect(rows.reduce((sum, row) => sum + row.time, 0) * steps).toBeCloseTo(payload.idle_ns);
  for (const row of rows) {
    expect(row.below!.reduce((sum, below) => sum + below.time, 0)).toBeCloseTo(row.time);
  }
});

it('shows for a cause the saving of all its rows together', () => {
  const sums = payload.sums.map(each => (each.cause === 'operator' ? { ...each, gain_ns: 7000 } : each));
  const rows = new Map(causeRows({ ...payload, sums }).map(row => [row.cause, row]));
  expect(rows.get('operator')!.gain).toBe(7000);
  expect(rows.get('operator')!.below!.map(row => row.gain)).toEqual([null]);
  expect(rows.get('tail')!.gain).toBe(null);
});

it('says that the work is already submitted where the host is not late', () => {
  const [row] = payload.causes;
  const nameless = { ...row!, subject: null, short_subject: null, others: 0 };
  const titles = (cause: string, by: IdlePayload['by']) =>
    causeRows({ ...payload, by, causes: [{ ...nameless, cause }] })[0]!.below![0]!.title;
  expect(titles('device_wait', 'cause')).toBe('work already submitted');
  expect(titles('kernel_gap', 'operator')).toBe('work already submitted');
  expect(titles('unlinked', 'module')).toBe('launch not recorded');
  expect(titles('tail', 'cause')).toBe('no further work');
  expect(titles('unrecorded', 'cause')).toBe('nothing recorded');
  expect(titles('unrecorded', 'operator')).toBe('outside operators');
});

it('colors every frame by its cause', () => {
  const root = buildIdleFlame(golden['idle/flame']);
  const colors = new Map(root.children.map(child => [child.name, child.color]));
  expect(colors.get('Launch calls')).toBe('var(--x-launch)');
  expect(colors.get('Kernel gaps')).toBe('var(--x-gap)');
  for (const cause of root.children) {
    expect(cause.children.filter(child => child.color !== cause.color)).toEqual([]);
  }
});

it('keeps the time of every frame within the one around it', () => {
  const root = buildIdleFlame(golden['idle/flame']);
  expect(root.children.reduce((sum, child) => sum + child.value, 0)).toBe(root.value);
});

it('opens a gap of a device as a moment, with a margin around it', () => {
  const device = { device: 1, stream: null };
  expect(onTimeline(device, { begin: 8000, end: 12_000, event: 5 })).toEqual({
    moment: '1:8000',
    at: '7000-13000',
  });
});

it('opens a gap of a stream, in which another may work, as a time range with the event to blame', () => {
  const stream = { device: 1, stream: 7 };
  expect(onTimeline(stream, { begin: 8000, end: 12_000, event: 5 })).toEqual({
    area: '8000-12000',
    at: '7000-13000',
    event: '5',
  });
  expect(onTimeline(stream, { begin: 8000, end: 8010, event: null })).toEqual({
    area: '8000-8010',
    at: '7000-9010',
  });
});
