import { cleanup, fireEvent, screen, waitFor } from '@testing-library/react';
import { expect, it, vi } from 'vitest';
import idle from '../../../../tests/golden/payloads/idle.json';
import golden from '../../../../tests/golden/payloads/overview.json';
import { capitalize } from '../../base/text';
import { drawnText, drawView, serveGoldens, textOf } from '../../testing/view';
import { longestSteps } from './select';
import View, { GRACE_MS } from '.';

serveGoldens({ ...golden, idle: idle.idle });

/** Hold all answers back until the function that is returned is called. */
function holdAnswers(): () => void {
  const answers = globalThis.fetch;
  let release!: () => void;
  const released = new Promise<void>(resolve => (release = resolve));
  vi.stubGlobal('fetch', async (address: URL) => {
    await released;
    return answers(address);
  });
  return release;
}

/** Let the page wait for all answers, however long they take. */
function waitForAll(): void {
  const start = globalThis.setTimeout;
  vi.spyOn(globalThis, 'setTimeout').mockImplementation(((run: () => void, ms?: number) =>
    ms === GRACE_MS ? 0 : start(run, ms)) as typeof setTimeout);
}

it('says why the device is idle, and for how long', () => {
  drawView(View, golden.overview);
  expect(drawnText(document.querySelector('h1'))).toBe(textOf(golden.overview.headline));
  expect(screen.getByText('DataLoader', { selector: 'th' }).closest('tr')!.textContent).toContain(
    '330 µs33%',
  );
  expect(screen.getByTitle('saves up to 330 µs, 33% (measured share)').textContent).toBe('330 µs 33%');
  expect(screen.getByText('How we know').closest('details')!.open).toBe(false);
  expect(document.querySelector('[data-part=how-we-know] p')!.textContent).toBe(
    textOf(golden.overview.gains),
  );
});

it('calls a device a GPU where its vendor does', async () => {
  const [device] = golden.overview.devices;
  for (const [kind, sentence] of [
    ['ROCm', 'GPU busy'],
    ['HPU', 'Device busy'],
  ] as const) {
    drawView(View, { ...golden.overview, devices: [{ ...device, kind }] });
    expect((await screen.findByLabelText('What the step is spent on')).textContent).toContain(sentence);
    cleanup();
  }
});

it('keeps the words around a link in one line where nothing is advised', async () => {
  const none = ['The ', 'timeline', ' shows it.'].map((text, i) => ({
    text,
    link: i === 1 ? 'trace' : null,
  }));
  drawView(View, { ...golden.overview, recommendations: [], no_advice: none });
  await screen.findByText('timeline');
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
    const sentence = (await screen.findByLabelText('What the step is spent on')).textContent;
    cleanup();
    return sentence;
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

it('shows what a configuration beside the trace asked for, and what that leaves out', () => {
  const recorder = {
    file: 'prof_config.json',
    asked: { 'Work of the card (HwTrace)': 'recorded', NIC: 'not recorded' },
    left_out: ["Won't record transfers between cards: NIC is off."],
    contradictions: ['NIC is off, but the trace has events of NIC.'],
  };
  const { configuration } = golden.overview;
  drawView(View, { ...golden.overview, configuration: { ...configuration, recorder } });
  const section = screen.getByRole('region', { name: 'Requested by prof_config.json' });
  expect(section.textContent).toContain('NICnot recorded');
  expect([...section.querySelectorAll('p')].map(each => each.textContent)).toEqual([
    ...recorder.contradictions,
    ...recorder.left_out,
  ]);
  cleanup();
  drawView(View, golden.overview);
  expect(screen.queryByText(/Requested by/)).toBeNull();
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

it('draws no more columns than there is room for: of each stretch the longest step', () => {
  const steps = Array.from({ length: 100_000 }, (_, i) => ({
    ...golden.overview.steps[0]!,
    name: `${i}`,
    duration_ns: i === 54_321 ? 9e9 : 1e6,
  }));
  const found = longestSteps(steps, 300);
  expect(found.length).toBeLessThanOrEqual(300);
  expect(found.some(step => step.name === '54321')).toBe(true);
  expect(longestSteps(steps.slice(0, 300), 300)).toEqual(steps.slice(0, 300));
  expect(longestSteps([], 0)).toEqual([]);
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
    headline: [{ text: 'Alone in 3.5 ms. Start here: exchange gradients less often.', link: null }],
    beside: [],
    waiting: null,
    recommendations: [],
  };
  const release = holdAnswers();
  drawView(View, alone);
  const headline = await screen.findByText(/^Alone\b/);
  expect(headline.tagName).toBe('H1');
  expect(headline.textContent).not.toContain('Start here');
  release();
  expect(await screen.findByText('waiting for other ranks', { selector: 'th' })).toBeTruthy();
  expect(drawnText(document.querySelector('h1'))).toBe(textOf(ranks.headline));
  expect(drawnText(document.querySelector('[data-part="beside"]'))).toBe(textOf(ranks.beside));
  expect(screen.getByText('Find out why rank 1 is late')).toBeTruthy();
});

it('reserves space for advice until the savings are estimated', async () => {
  const preview = golden['overview/preview'];
  const release = holdAnswers();
  drawView(View, preview);
  const advice = await screen.findByRole('region', { name: 'What to change first' });
  expect(advice.getAttribute('aria-busy')).toBe('true');
  expect(advice.textContent).toContain('Replaying the schedule');
  expect(drawnText(document.querySelector('h1'))).toContain(textOf(preview.headline));
  release();
  await waitFor(() => expect(advice.getAttribute('aria-busy')).toBe('false'));
  expect(drawnText(document.querySelector('h1'))).toBe(textOf(golden.overview.headline));
  expect(advice.textContent).not.toContain('Replaying');
  expect(document.querySelector('[data-part=how-we-know] p')!.textContent).toBe(
    textOf(golden.overview.gains),
  );
});

it('draws what comes in time at once, without room for what may come', async () => {
  waitForAll();
  drawView(View, golden['overview/preview']);
  expect(document.querySelector('h1')!.textContent).toBe('Overview');
  const advice = await screen.findByRole('region', { name: 'What to change first' });
  expect(advice.getAttribute('aria-busy')).toBe('false');
  expect(drawnText(document.querySelector('h1'))).toBe(textOf(golden.overview.headline));
});

it('lists advice as rows: the first open, the others with one line, and a last one that says it is all', () => {
  const [first] = golden.overview.recommendations;
  const items = Array.from({ length: 3 }, (_, i) => ({
    ...first!,
    id: `${i}`,
    exception: `exception ${i}.`,
  }));
  drawView(View, { ...golden.overview, recommendations: items });
  const rows = [...document.querySelectorAll('[data-part=advice-row]')];
  const isOpen = () => rows.map(row => row.querySelector('h3 button')!.getAttribute('aria-expanded'));
  expect(isOpen()).toEqual(['true', 'false', 'false']);
  expect(rows.map(row => row.textContent!.includes("Doesn't apply if"))).toEqual([true, false, false]);
  expect(drawnText(rows[1]!.querySelector('p'))).toBe(textOf(first!.text));
  expect(document.querySelector('[data-part=advice-rest]')!.textContent).toMatch(/^4Nothing else stands out/);
  fireEvent.click(rows[2]!.querySelector('h3 button')!);
  expect(decodeURIComponent(location.hash)).toContain('advice=0,2');
});

it('opens the rows that the address names', () => {
  const [first] = golden.overview.recommendations;
  const items = Array.from({ length: 3 }, (_, i) => ({ ...first!, id: `${i}` }));
  drawView(View, { ...golden.overview, recommendations: items }, { params: { advice: '1' } });
  const rows = [...document.querySelectorAll('[data-part=advice-row] h3 button')];
  expect(rows.map(row => row.getAttribute('aria-expanded'))).toEqual(['false', 'true', 'false']);
});

it('draws what a change saves on the scale of the step, and says so where the payoff is unknown', () => {
  const [first] = golden.overview.recommendations;
  const half = { ...first!, id: 'half', gain_ns: golden.overview.average.duration_ns / 2, gain_share: 0.5 };
  const unknown = { ...first!, id: 'unknown', gain: 'payoff unknown', gain_ns: null, gain_share: null };
  drawView(View, { ...golden.overview, recommendations: [half, unknown] });
  const [row, other] = document.querySelectorAll('[data-part=advice-row]');
  expect(row!.querySelector<HTMLElement>('[role=img] i')!.style.width).toBe('50%');
  expect([...row!.querySelectorAll('dl dd:nth-of-type(even)')].map(cell => cell.textContent)).toEqual([
    '1.00 ms',
    '500 µs at best',
  ]);
  const more = { ...half, id: 'more', gain_ns: 123_450, gain_is_limit: false };
  drawView(View, { ...golden.overview, recommendations: [more] });
  const last = [...document.querySelectorAll('[data-part=advice-row]')].at(-1)!;
  expect(last.textContent).toContain('≥ 123 µs');
  expect(last.textContent).toContain('877 µs or less');
  expect(other!.querySelector('[role=img]')).toBeNull();
  expect(other!.textContent).toContain('payoff unknown');
});

it('answers the next question where nothing is advised', async () => {
  waitForAll();
  const four = { ...idle.idle, sums: idle.idle.sums.slice(0, 4) };
  const answer = {
    view: 'idle',
    run: 'run',
    worker: 'w',
    span: '1',
    state: 'ready',
    loading: 0,
    payload: four,
  };
  vi.stubGlobal('fetch', () => Promise.resolve(new Response(JSON.stringify(answer))));
  drawView(View, { ...golden.overview, recommendations: [], no_advice: [{ text: 'None.', link: null }] });
  const panel = await screen.findByRole('region', { name: 'Where the idle time is' });
  expect(panel.getAttribute('aria-busy')).toBe('false');
  expect(panel.querySelectorAll('li').length).toBe(4);
  expect(panel.querySelector('ol')!.style.minHeight).toBe('');
  expect(document.querySelector('[data-part=advice]')!.tagName).toBe('P');
});

it('says that the rest failed, and what each change takes away as measured', async () => {
  const [first] = golden['overview/preview'].recommendations;
  vi.stubGlobal('fetch', () => Promise.reject(new Error('no network')));
  drawView(View, { ...golden['overview/preview'], reasons: {} });
  expect(await screen.findByText(/^Unknown:/)).toBeTruthy();
  expect(screen.getByRole('region', { name: 'What to change first' }).textContent).toContain(
    capitalize(first!.gain),
  );
  expect(document.body.textContent).not.toContain('Replaying');
});

it('asks no other rank about a process that communicates with none', () => {
  const fetched = vi.spyOn(globalThis, 'fetch');
  drawView(View, golden.overview);
  expect(fetched).not.toHaveBeenCalled();
});
