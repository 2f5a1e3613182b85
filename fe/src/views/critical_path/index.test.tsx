import { cleanup, fireEvent, screen, within } from '@testing-library/react';
import { expect, it } from 'vitest';
import golden from '../../../../tests/golden/payloads/critical_path.json';
import { draw, drawView, pick, serveGoldens } from '../../testing/view';
import View from '.';
import { JobPath } from './JobPath';
import { stepAt, WhatIf } from './WhatIf';

serveGoldens(golden);

it('says what limits the step, and what each target would save', () => {
  drawView(View, golden.critical_path);
  expect(screen.getByRole('heading', { level: 1 }).textContent).toMatch(/is likely host-bound: /);
  const table = within(screen.getByRole('grid', { name: 'what-if targets' }));
  const row = table.getByRole('row', { name: /Data loading/ });
  expect(row.textContent).toContain('330 µs');
  expect(row.textContent).toContain('165 µs');
  const limits = screen.getByText(/assumes that the host doesn't need the result/).closest('details')!;
  expect(limits.open).toBe(false);
  expect(limits.querySelector('summary')!.textContent).toMatch(
    /^How we know · [\d.]+% of device work explained$/,
  );
});

it('opens what a category counts, from its name and from the bar', () => {
  const { path } = golden.critical_path;
  const unknown = { ...path.categories[0]!, name: 'unknown', title: 'Unknown', link: null };
  drawView(View, { ...golden.critical_path, path: { ...path, categories: [...path.categories, unknown] } });
  const legend = within(screen.getByRole('list', { name: 'Parts of the path' }));
  const empty = location.hash;
  for (const { title, link } of path.categories) {
    const [view, params] = link.split('?');
    const bar = screen.getByTitle(new RegExp(`^${title}: `));
    for (const part of [legend.getByRole('button', { name: title }), bar]) {
      location.hash = empty;
      fireEvent.click(part);
      const opened = decodeURIComponent(location.hash);
      expect(opened).toContain(`view=${view}`);
      expect(opened).toContain(params ?? '');
    }
  }
  expect(legend.queryByRole('button', { name: 'Unknown' })).toBeNull();
  expect(screen.getByTitle(/^Unknown: /).hasAttribute('disabled')).toBe(true);
});

it('updates the saving with the slider, for the selected target', () => {
  drawView(View, golden.critical_path);
  const slider = () => screen.getByRole('slider', { name: 'Less time' });
  expect(slider().getAttribute('aria-valuetext')).toBe('50%');
  expect(screen.getByText('Saves 427 µs, 42.7% of the step')).toBeTruthy();
  expect(screen.queryByText(/roofline/)).toBeNull();
  const table = within(screen.getByRole('grid', { name: 'what-if targets' }));
  fireEvent.click(table.getByRole('row', { name: /Data loading/ }));
  expect(screen.getByRole('heading', { name: 'What if: Data loading' })).toBeTruthy();
  expect(screen.getByText('Saves 165 µs, 16.5% of the step')).toBeTruthy();
  fireEvent.keyDown(slider(), { key: 'End' });
  expect(screen.getByText('Saves 330 µs, 33% of the step')).toBeTruthy();
});

it.each(['device', 'kernel:gemm'])('says that the roofline bounds what %s saves', target => {
  const row = { target, title: target, step_ns: [100, 75, 50, 25, 0] };
  draw(
    <WhatIf
      target={row}
      percents={[0, 25, 50, 75, 100]}
      base="step"
      selectors={{ run: 'run', worker: 'w', span: '1' }}
    />,
  );
  expect(screen.getByText(/^The replay doesn’t apply rooflines/)).toBeTruthy();
});

it('mentions no average of a single step, and no step if none is recorded', () => {
  const [first] = golden.critical_path.steps;
  drawView(View, { ...golden.critical_path, steps: [first, first] });
  expect(screen.getByRole('heading', { name: /^An average step’s critical path, / })).toBeTruthy();
  expect(screen.getByText(/^per step; targets overlap/)).toBeTruthy();
  cleanup();
  drawView(View, { ...golden.critical_path, steps: [first] });
  expect(screen.getByRole('heading', { name: /^The step’s critical path, / })).toBeTruthy();
  expect(screen.queryByText(/per step/)).toBeNull();
  cleanup();
  drawView(View, { ...golden.critical_path, steps: [first], steps_recorded: false });
  expect(screen.getByRole('heading', { name: /^The trace’s critical path, / })).toBeTruthy();
  expect(screen.getByText('Saves 427 µs, 42.7% of the trace')).toBeTruthy();
  expect(screen.getByText(/^replays the trace with less time/)).toBeTruthy();
});

it('shows the path by operator, and estimates the step without one', async () => {
  drawView(View, golden.critical_path);
  const heading = () => screen.getByRole('heading', { name: /^What if/ }).textContent;
  const before = heading();
  await pick('Path by', 'operator');
  const table = within(await screen.findByRole('grid', { name: 'path by operator' }));
  const [, ...rows] = table.getAllByRole('row');
  const { rows: sent } = golden['critical_path/groups'];
  expect(rows.map(row => row.textContent)).toEqual(sent.map(row => expect.stringContaining(row.title)));
  const named = sent.find(row => row.target !== null && `What if: ${row.title}` !== before)!;
  fireEvent.click(rows[sent.indexOf(named)]!);
  expect(heading()).toBe(`What if: ${named.title}`);
  expect(location.hash).toContain('path_by=operator');
});

it('says which rank has most of the path of a job, and opens a segment on its rank', async () => {
  draw(<JobPath selectors={{ run: 'run', worker: 'w', span: '1' }} workers={2} />);
  const table = within(await screen.findByRole('grid', { name: 'segments of the path' }));
  expect(screen.getByText(/of the job's critical path is on/)).toBeTruthy();
  fireEvent.click(table.getAllByRole('row', { name: /rank \d/ })[0]!);
  expect(location.hash).toMatch(/worker=rank\d/);
  expect(location.hash).toContain('path=true');
});

it.each([
  [0, 100],
  [25, 80],
  [30, 78],
  [100, 50],
])('with %i percent gone a step takes %i', (percent, step) => {
  expect(stepAt([0, 25, 50, 75, 100], [100, 80, 70, 60, 50], percent)).toBe(step);
});
