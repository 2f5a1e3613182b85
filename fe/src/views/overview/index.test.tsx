import { cleanup, fireEvent, screen, waitFor } from '@testing-library/react';
import { expect, it, vi } from 'vitest';
import golden from '../../../../tests/golden/payloads/overview.json';
import { drawView, serveGoldens, textOf } from '../../testing/view';
import View from '.';

serveGoldens(golden);

it('says why the device is idle, and for how long', () => {
  drawView(View, golden.overview);
  expect(document.querySelector('h1')!.textContent).toBe(textOf(golden.overview.headline));
  expect(screen.getByText('DataLoader', { selector: 'th' }).closest('tr')!.textContent).toContain(
    '330 µs33%',
  );
  expect(screen.getByText('saves up to 330 µs, 33% (measured share)')).toBeTruthy();
  expect(screen.getByText('How we know').closest('details')!.open).toBe(false);
  expect(document.querySelector('[data-part=how-we-know] p')!.textContent).toBe(
    textOf(golden.overview.gains),
  );
});

it('calls a device a GPU where its vendor does', async () => {
  const [device] = golden.overview.devices;
  for (const [kind, said] of [
    ['ROCm', 'GPU busy'],
    ['HPU', 'Device busy'],
  ] as const) {
    drawView(View, { ...golden.overview, devices: [{ ...device, kind }] });
    expect((await screen.findByLabelText('What the step is spent on')).textContent).toContain(said);
    cleanup();
  }
});

it('keeps the words around a link in one line where nothing is advised', () => {
  const none = ['The ', 'timeline', ' shows it.'].map((text, i) => ({
    text,
    link: i === 1 ? 'trace' : null,
  }));
  drawView(View, { ...golden.overview, recommendations: [], no_advice: none });
  const { children, textContent } = document.querySelector('[data-part=advice]')!;
  // The room that is kept for cards lays its children out below each other.
  expect([children.length, textContent]).toEqual([1, 'The timeline shows it.']);
});

it('says of a device whose kernels or copies are missing no more than is known', async () => {
  const without = async (...unknown: string[]) => {
    const categories = Object.fromEntries(unknown.map(category => [category, null]));
    const { average } = golden.overview;
    drawView(View, {
      ...golden.overview,
      average: { ...average, categories: { ...average.categories, ...categories } },
    });
    const said = (await screen.findByLabelText('What the step is spent on')).textContent;
    cleanup();
    return said;
  };
  expect(await without()).toMatch(/GPU busy \d.*GPU idle \d/);
  expect(await without('memcpy')).toMatch(/GPU busy at least \d.*GPU idle at most \d/);
  expect(await without('kernel', 'memcpy', 'memset')).not.toMatch(/GPU/);
});

it('says how much of the peak is used, at least, or why nobody knows', () => {
  const use = {
    ...{
      mfu: 0.166,
      hfu: null,
      coverage: 0.95,
      complete: false,
      peaks: 'H100 SXM',
      sources: ['a whitepaper'],
    },
    reasons: { hfu: [{ text: 'why' }] },
  };
  drawView(View, { ...golden.overview, hardware: use });
  expect(screen.getByText('MFU').closest('div')!.textContent).toContain('≥ 16.6%');
  expect(screen.getByText('HFU').closest('div')!.textContent).toContain('unknown');
  expect(screen.getByText('Modeled').closest('div')!.textContent).toContain('95%');
  expect(screen.getByTitle('a whitepaper').textContent).toBe('H100 SXM');
  cleanup();
  drawView(View, { ...golden.overview, hardware: { ...use, mfu: 0.00042 } });
  expect(screen.getByText('MFU').closest('div')!.textContent).toContain('≥ 0.042%');
});

it('names what has to be recorded to know the use of the peak', () => {
  drawView(View, golden.overview);
  expect(screen.getByText(/^Unknown: no input shapes were recorded/)).toBeTruthy();
});

it('separates computing from exposed communication, where a device communicates', () => {
  const [device] = golden.overview.devices;
  drawView(View, { ...golden.overview, devices: [{ ...device, utilization: 0.95, computing: 0.08 }] });
  expect(screen.getByText('of it computing').closest('div')!.textContent).toContain('8%');
  cleanup();
  drawView(View, { ...golden.overview, devices: [{ ...device, utilization: 0.95, computing: 0.95 }] });
  expect(screen.queryByText('of it computing')).toBeNull();
});

it('shows one step alone, and the average again', async () => {
  drawView(View, golden.overview);
  fireEvent.click(await screen.findByLabelText(/^Step 1, 1\.00 ms/));
  expect(screen.getByText('Step 1, 1.00 ms')).toBeTruthy();
  fireEvent.click(screen.getByText('Show the average'));
  expect(screen.getByText('An average step, 1.00 ms')).toBeTruthy();
});

it('compares steps only where there are several', () => {
  drawView(View, golden.overview);
  expect(screen.getByText('Step by step')).toBeTruthy();
  expect(screen.getByText('Min – max')).toBeTruthy();
  cleanup();
  drawView(View, { ...golden.overview, steps: golden.overview.steps.slice(0, 1) });
  expect(screen.queryByText('Step by step')).toBeNull();
  expect(screen.queryByText('Min – max')).toBeNull();
});

it('writes the value of a step above the line of the average', async () => {
  drawView(View, golden.overview);
  await screen.findByLabelText(/^Step 1, 1\.00 ms/);
  const line = document.querySelector('[data-part=average-line]')!;
  const values = [...document.querySelectorAll('[data-part=step-value]')];
  expect(values.map(value => value.textContent)).toEqual(golden.overview.steps.map(() => '1.00'));
  for (const value of values) {
    expect(line.compareDocumentPosition(value) & Node.DOCUMENT_POSITION_FOLLOWING).toBeTruthy();
    expect(value.classList.contains('halo')).toBe(true);
  }
});

it('says what the other ranks tell of its communication once they are compared', async () => {
  const ranks = golden['overview/ranks'];
  const alone = {
    ...ranks,
    headline: [{ text: 'Alone', link: null }],
    beside: [],
    waiting: null,
    recommendations: [],
  };
  drawView(View, alone);
  expect(document.querySelector('h1')!.textContent).toBe('Alone');
  expect(await screen.findByText('waiting for other ranks', { selector: 'th' })).toBeTruthy();
  expect(document.querySelector('h1')!.textContent).toBe(textOf(ranks.headline));
  expect(document.querySelector('[data-part="beside"]')!.textContent).toBe(textOf(ranks.beside));
  expect(screen.getByText('Find out why rank 1 is late')).toBeTruthy();
});

it('reserves space for advice until the savings are estimated', async () => {
  const preview = golden['overview/preview'];
  drawView(View, preview);
  const advice = screen.getByRole('region', { name: 'What to do' });
  expect(advice.getAttribute('aria-busy')).toBe('true');
  expect(advice.textContent).toContain('Replaying the schedule');
  expect(document.querySelector('h1')!.textContent).toContain(textOf(preview.headline));
  await waitFor(() => expect(advice.getAttribute('aria-busy')).toBe('false'));
  expect(document.querySelector('h1')!.textContent).toBe(textOf(golden.overview.headline));
  expect(advice.textContent).not.toContain('Replaying');
  expect(document.querySelector('[data-part=how-we-know] p')!.textContent).toBe(
    textOf(golden.overview.gains),
  );
});

it.each([
  [660, 2],
  [2000, 3],
])(
  'has as many cards as a row of %d px has room for, and a line that unfolds for the rest',
  (width, cards) => {
    vi.spyOn(HTMLElement.prototype, 'offsetWidth', 'get').mockReturnValue(width);
    const [first] = golden.overview.recommendations;
    const items = Array.from({ length: 4 }, (_, i) => ({ ...first!, id: `${i}`, rule: `rule ${i}` }));
    drawView(View, { ...golden.overview, recommendations: items });
    const advice = screen.getByRole('region', { name: 'What to do' });
    expect(advice.querySelectorAll('ol > li')).toHaveLength(cards);
    const lines = [...advice.querySelectorAll('ul > li')];
    expect(lines).toHaveLength(4 - cards);
    lines.forEach(line => {
      expect(line.querySelector('summary')!.textContent).toContain(first!.gain);
      expect(line.querySelector('details')!.textContent).toContain(first!.exception);
      expect(line.lastElementChild!.textContent).toBe('Show it');
    });
  },
);

it('says that the rest failed, and what each change takes away as measured', async () => {
  const [first] = golden['overview/preview'].recommendations;
  vi.stubGlobal('fetch', () => Promise.reject(new Error('no network')));
  drawView(View, { ...golden['overview/preview'], reasons: {} });
  expect(await screen.findByText(/^Unknown:/)).toBeTruthy();
  expect(screen.getByRole('region', { name: 'What to do' }).textContent).toContain(first!.gain);
  expect(document.body.textContent).not.toContain('Replaying');
});

it('asks no other rank about a process that communicates with none', () => {
  const fetched = vi.spyOn(globalThis, 'fetch');
  drawView(View, golden.overview);
  expect(fetched).not.toHaveBeenCalled();
});
