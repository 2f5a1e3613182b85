import { expect, test } from 'vitest';
import golden from '../../../../tests/golden/payloads/trace.json';
import type { TracePayload } from '../../api/types';
import { buildLayout, laneBox, DEFAULT_ARRANGEMENT, rowAt } from './layout';

const payload = golden.trace as unknown as TracePayload;

const keys = (how = {}) => buildLayout(payload, { ...DEFAULT_ARRANGEMENT, ...how }).rows.map(row => row.key);

test('tracks stand below their groups, the ruler apart', () => {
  expect(keys()).toEqual(['g0', 't0', 'g1', 't5', 't1', 't2', 't3']);
});

test('pins stand on top as well, hidden tracks and folded groups go, groups move', () => {
  expect(keys({ pinned: [1] })).toEqual(['p1', 'g0', 't0', 'g1', 't5', 't1', 't2', 't3']);
  expect(keys({ hidden: new Set([2, 3]) })).toEqual(['g0', 't0', 'g1', 't5', 't1']);
  expect(keys({ hidden: new Set([0]) })).toEqual(['g1', 't5', 't1', 't2', 't3']);
  expect(keys({ folded: new Set(['g1']) })).toEqual(['g0', 't0', 'g1']);
  expect(keys({ order: [1] })).toEqual(['g1', 't5', 't1', 't2', 't3', 'g0', 't0']);
});

test('a filter looks at the group too', () => {
  expect(keys({ filter: 'ALERT(1)> stream' })).toEqual(['g1', 't1']);
});

test('rows touch, and the row at a height is found', () => {
  const layout = buildLayout(payload, DEFAULT_ARRANGEMENT);
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
    buildLayout(payload, { ...DEFAULT_ARRANGEMENT, ...how }).rows.find(row => row.key === 't0')!.height;
  expect(high()).toBeGreaterThan(3 * 18);
  expect(high({ folded: new Set(['0']) })).toBeLessThan(2 * 18);
});

test('a deep track shows four lanes and the rest as a strip, all of them when asked to or with Python frames', () => {
  const deepened = (python: boolean) => ({
    ...payload,
    python,
    tracks: payload.tracks.map(track => (track.id === 0 ? { ...track, depth: 7 } : track)),
  });
  const row = (how = {}, python = false) =>
    buildLayout(deepened(python), { ...DEFAULT_ARRANGEMENT, ...how }).rows.find(each => each.key === 't0')!;
  expect([row().lanes, row().more]).toEqual([4, 3]);
  expect(row().height).toBeLessThan(5 * 18 + 6);
  expect(laneBox(row(), 6)).toEqual(laneBox(row(), 4));
  expect(laneBox(row(), 4).top + laneBox(row(), 4).height).toBeLessThan(row().height);
  expect([row({ deep: new Set([0]) }).lanes, row({}, true).more]).toEqual([7, 0]);
  expect(laneBox(row({}, true), 6).top).toBe(3 + 6 * 18);
});
