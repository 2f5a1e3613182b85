import { expect, test } from 'vitest';
import type { Layout } from './draw/layout';
import { visibleSlice, sliceInDirection, type Direction } from './lookup';
import type { Cover } from './tiles/store';
import type { Tile } from './tiles/tile';

// Track 1: a (0 to 100) with b (10 to 30) and c (40 to 60) inside; track 2: d (50 to 70); track 3: e (500 to 600).
const boxes = [
  { track: 1, depth: 0, start: 0, duration: 100 },
  { track: 1, depth: 1, start: 10, duration: 20 },
  { track: 1, depth: 1, start: 40, duration: 20 },
  { track: 2, depth: 0, start: 50, duration: 20 },
  { track: 3, depth: 0, start: 500, duration: 100 },
];
const [a, b, c, d, e] = [0, 1, 2, 3, 4];
const data = {
  start: Float64Array.from(boxes, box => box.start),
  duration: Float64Array.from(boxes, box => box.duration),
  event: Int32Array.from(boxes, (_, i) => i),
  count: Uint32Array.from(boxes, () => 1),
  lanes: new Map([
    [
      1,
      [
        { depth: 0, first: 0, last: 1 },
        { depth: 1, first: 1, last: 3 },
      ],
    ],
    [2, [{ depth: 0, first: 3, last: 4 }]],
    [3, [{ depth: 0, first: 4, last: 5 }]],
  ]),
} as unknown as Tile;
const layout = {
  rows: [1, 9, 2, 3].map((id, i) => ({ kind: 'slices', y: 50 * i, height: 50, track: { id } })),
  height: 200,
} as unknown as Layout;
const visible = {
  tiles: [{ begin: 0, end: 1000, data }] as unknown as Cover<Tile>[],
  layout,
  window: { begin: 0, end: 100 },
  scroll: 0,
};
const go = (from: number, way: Direction) => sliceInDirection(visible, boxes[from]!, way);

test('along a lane, and into and out of a slice', () => {
  expect(go(b, 'after')).toBe(c);
  expect(go(c, 'before')).toBe(b);
  expect(go(c, 'after')).toBeNull();
  expect(go(a, 'in')).toBe(b);
  expect(go(c, 'out')).toBe(a);
});

test('from the last lane to the next track that has slices, and back to what is nearest', () => {
  expect(go(c, 'in')).toBe(d);
  expect(go(d, 'in')).toBe(e);
  expect(go(d, 'out')).toBe(a);
  expect(go(a, 'out')).toBeNull();
});

test('what lies beyond a slice is not inside it', () => {
  const late = { ...boxes[a]!, duration: 5 };
  expect(sliceInDirection(visible, late, 'in')).toBe(d);
});

test('without a selection, what lies in the middle of the first track in sight', () => {
  expect(visibleSlice(visible)).toBe(a);
  expect(visibleSlice({ ...visible, scroll: 60 })).toBe(d);
  expect(visibleSlice({ ...visible, tiles: [] })).toBeNull();
});
