import { expect, test } from 'vitest';
import type { TracePayload } from '../../api/types';
import { arrange, NOTHING_ARRANGED, rowAt } from './layout';

const track = (id: number, group: number, name: string, kind = 'thread', depth = 1) => ({
  id,
  group,
  name,
  kind,
  depth,
  role: 'host',
});

const payload = {
  groups: [{ name: 'Process 1' }, { name: 'GPU 0' }],
  tracks: [
    { ...track(0, 0, 'Steps', 'steps'), group: null },
    track(1, 0, 'main', 'thread', 3),
    track(2, 0, 'autograd'),
    track(3, 1, 'stream 7', 'stream'),
    track(4, 1, 'utilization', 'counter'),
  ],
} as unknown as TracePayload;

const keys = (how = {}) => arrange(payload, { ...NOTHING_ARRANGED, ...how }).rows.map(row => row.key);

test('tracks stand below their groups, the ruler apart', () => {
  expect(keys()).toEqual(['g0', 't1', 't2', 'g1', 't3', 't4']);
});

test('pins stand on top as well, hidden tracks and folded groups go, groups move', () => {
  expect(keys({ pinned: [3] })).toEqual(['p3', 'g0', 't1', 't2', 'g1', 't3', 't4']);
  expect(keys({ hidden: new Set([1, 2]) })).toEqual(['g1', 't3', 't4']);
  expect(keys({ folded: new Set(['g0']) })).toEqual(['g0', 'g1', 't3', 't4']);
  expect(keys({ order: [1] })).toEqual(['g1', 't3', 't4', 'g0', 't1', 't2']);
});

test('a filter looks at the group too', () => {
  expect(keys({ filter: 'gpu 0 STREAM' })).toEqual(['g1', 't3']);
});

test('rows touch, and the row at a height is found', () => {
  const layout = arrange(payload, NOTHING_ARRANGED);
  let y = 0;
  for (const row of layout.rows) {
    expect(row.y).toBe(y);
    expect(rowAt(layout, y)?.key).toBe(row.key);
    expect(rowAt(layout, y + row.height - 1)?.key).toBe(row.key);
    y += row.height;
  }
  expect(layout.height).toBe(y);
  expect(rowAt(layout, y)).toBeUndefined();
  expect(rowAt(layout, -1)).toBeUndefined();
});

test('a track is as high as it is deep, one thin lane where it is folded', () => {
  const high = (how = {}) =>
    arrange(payload, { ...NOTHING_ARRANGED, ...how }).rows.find(row => row.key === 't1')!.height;
  expect(high()).toBeGreaterThan(3 * 18);
  expect(high({ folded: new Set(['1']) })).toBeLessThan(2 * 18);
});
