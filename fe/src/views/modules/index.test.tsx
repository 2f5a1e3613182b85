import { fireEvent, screen, within } from '@testing-library/react';
import { expect, it, vi } from 'vitest';
import golden from '../../../../tests/golden/payloads/modules.json';
import { drawView, serveGoldens } from '../../testing/view';
import View from '.';

serveGoldens(golden);

it('shows the tree of modules with the work outside any module', () => {
  drawView(View, golden.modules);
  const tree = screen.getByRole('treegrid', { name: 'modules' });
  expect(within(tree).getByRole('row', { name: /Net_0/ }).textContent).toContain('117 µs');
  expect(screen.getByText(/outside any module 3\.00 µs in 1 device event/)).toBeTruthy();
});

it('draws the flame graph', async () => {
  drawView(View, golden.modules, { params: { show: 'flame' } });
  expect(await screen.findByRole('tree', { name: 'Flame graph of all modules' })).toBeTruthy();
});

it('loads the call tree level by level', async () => {
  drawView(View, golden.modules, { params: { show: 'calls' } });
  const calls = await screen.findByRole('treegrid', { name: 'Call tree' });
  expect((await within(calls).findAllByText(/run_training_batch/)).length).toBeGreaterThan(0);
});

const call = (event: number, name: string, duration_ns: number, children: number) => ({
  ...golden['modules/calls'].rows[0]!,
  event,
  name,
  duration_ns,
  children,
});
const LEVELS: Record<string, { longest: number; rows: ReturnType<typeof call>[] }> = {
  null: { longest: 1, rows: [call(1, 'short', 10, 2), call(2, 'long', 30, 2)] },
  2: { longest: 1, rows: [call(3, 'less', 5, 1), call(4, 'most', 20, 1)] },
  4: { longest: 0, rows: [call(5, 'leaf', 15, 0)] },
};

it('expands the hottest path down to a call without children', async () => {
  vi.stubGlobal('fetch', (address: URL) => {
    const level = LEVELS[String(address.searchParams.get('parent'))]!;
    const payload = { ...golden['modules/calls'], ...level, total: level.rows.length };
    return Promise.resolve(new Response(JSON.stringify({ state: 'ready', loading: 0, payload })));
  });
  vi.spyOn(HTMLElement.prototype, 'scrollIntoView').mockImplementation(() => {});
  drawView(View, golden.modules, { params: { show: 'calls' } });
  const calls = await screen.findByRole('treegrid', { name: 'Call tree' });
  const rowOf = (name: string) => within(calls).getByText(name).closest<HTMLElement>('[role=row]')!;
  await within(calls).findByText('long');
  expect(rowOf('long').getAttribute('aria-expanded')).toBe('false');
  fireEvent.click(screen.getByRole('button', { name: 'Hottest path' }));
  await within(calls).findByText('leaf');
  expect(document.activeElement).toBe(rowOf('leaf'));
  expect(['short', 'long', 'less', 'most'].map(name => rowOf(name).getAttribute('aria-expanded'))).toEqual([
    'false',
    'true',
    'false',
    'true',
  ]);
});
