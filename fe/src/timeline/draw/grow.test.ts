import { expect, test } from 'vitest';
import golden from '../../../../tests/golden/payloads/trace.json';
import type { TracePayload } from '../../api/types';
import { growLayout } from './grow';
import { buildLayout, DEFAULT_ARRANGEMENT, type Layout } from './layout';

const payload = golden.trace as unknown as TracePayload;
const deepened = {
  ...payload,
  tracks: payload.tracks.map(track => (track.id === 0 ? { ...track, depth: 7 } : track)),
};
const layoutOf = (how = {}) => buildLayout(deepened, { ...DEFAULT_ARRANGEMENT, ...how });
const rowOf = (layout: Layout, key: string) => layout.rows.find(row => row.key === key)!;

test('without room nothing grows', () => {
  const layout = layoutOf();
  expect(growLayout(layout, layout.height)).toBe(layout);
});

test('lanes that were cut off are shown before any lane grows, and then there is nothing to unfold', () => {
  const layout = layoutOf();
  expect([rowOf(layout, 't0').more, rowOf(layout, 't0').unfolds]).toEqual([3, true]);
  const grown = growLayout(layout, layout.height + 3 * 18);
  const row = rowOf(grown, 't0');
  expect([row.lanes, row.more, row.unfolds, row.lane]).toEqual([7, 0, false, 18]);
  const scarce = growLayout(layout, layout.height + 40);
  expect([rowOf(scarce, 't0').more, rowOf(scarce, 't0').unfolds]).toEqual([3, true]);
});

test('what is read first grows first, and the room is used', () => {
  const layout = layoutOf();
  const taller = (grown: Layout, key: string) => rowOf(grown, key).lane / rowOf(layout, key).lane;
  const scarce = growLayout(layout, layout.height + 130);
  expect(taller(scarce, 't0')).toBeGreaterThan(1.2);
  expect(taller(scarce, 't1')).toBeGreaterThan(1.2);
  expect(taller(scarce, 't3')).toBeLessThan(1.2);
  const room = 3 * layout.height;
  const plenty = growLayout(layout, room);
  expect(plenty.height).toBeLessThanOrEqual(room);
  expect(plenty.height).toBeGreaterThan(0.95 * room);
  expect(taller(plenty, 't3')).toBeGreaterThan(2);
});

test('rows still touch; groups and folded tracks keep their height', () => {
  const layout = layoutOf({ folded: new Set(['1']) });
  const grown = growLayout(layout, 2 * layout.height);
  let y = 0;
  for (const row of grown.rows) {
    expect(row.y).toBe(y);
    y += row.height;
    const fixed = row.kind === 'group' || row.folded;
    expect(row.height > rowOf(layout, row.key).height).toBe(!fixed);
  }
  expect(grown.height).toBe(y);
});
