import { expect, test } from 'vitest';
import { hitTestBlame, paintBlame, columnShares } from './blame';
import type { Palette } from './colors';
import type { TrackRow } from './layout';
import type { Scene } from './scene';
import type { Tile } from '../tiles/tile';

interface Box {
  category: number;
  start: number;
  duration: number;
  busy?: number;
  count?: number;
}

/** Lanes by category: 0 is work, 1 and 2 are causes of idle time. */
function tile(begin: number, end: number, boxes: Box[]): Tile {
  const sorted = boxes.toSorted((a, b) => a.category - b.category || a.start - b.start);
  const lanes = [...new Set(sorted.map(box => box.category))].map(depth => ({
    depth,
    first: sorted.findIndex(box => box.category === depth),
    last: sorted.findLastIndex(box => box.category === depth) + 1,
  }));
  return {
    begin,
    end,
    unit: 1,
    names: new Map(),
    shortNames: new Map(),
    lanes: new Map([[5, lanes]]),
    start: Float64Array.from(sorted, box => box.start),
    duration: Float64Array.from(sorted, box => box.duration),
    busy: Float64Array.from(sorted, box => box.busy ?? box.duration),
    count: Uint32Array.from(sorted, box => box.count ?? 1),
    event: Int32Array.from(sorted, (_, i) => i),
    name: Int32Array.from(sorted, () => -1),
    color: Uint16Array.from(sorted, box => box.category),
  };
}

const row = {
  kind: 'blame',
  y: 0,
  height: 34,
  lane: 28,
  folded: false,
  track: { id: 5 },
} as unknown as TrackRow;
const palette = {
  categories: ['#work', '#sync', '#late'].map(fill => ({ fill, ink: '#ink' })),
  stacked: [1, 2, 0],
  idle: [null, 'sync', 'operator'],
} as unknown as Palette;

const scene = (begin: number, end: number, ...tiles: Tile[]): Scene => ({
  width: 10,
  height: 100,
  window: { begin, end },
  origin: 0,
  layout: { rows: [row], height: 34 },
  scroll: 0,
  palette,
  tiles: [],
  samples: [],
  blame: tiles.map(data => ({ begin: data.begin, end: data.end, data })),
  names: new Map(),
  highlight: null,
});

function drawnSlices(what: Scene): [string, number, number, number][] {
  const found: [string, number, number, number][] = [];
  const context = {
    fillStyle: '',
    measureText: (text: string) => ({ width: text.length * 6 }),
    fillText: () => undefined,
    fillRect(x: number, y: number, width: number, height: number) {
      found.push([this.fillStyle, x, width, Math.round((height / 27) * 100) / 100]);
      expect(y + height).toBeLessThanOrEqual(30.001);
    },
  };
  paintBlame(context as unknown as CanvasRenderingContext2D, what, row, 0);
  return found;
}

test('each column is as high as the share of its time, idle time from below', () => {
  const boxes = [
    { category: 0, start: 0, duration: 55 },
    { category: 1, start: 55, duration: 2 },
    { category: 2, start: 57, duration: 43 },
  ];
  expect(drawnSlices(scene(0, 100, tile(0, 100, boxes)))).toEqual([
    ['#work', 0, 5, 1],
    ['#sync', 5, 1, 0.2],
    ['#late', 5, 1, 0.3],
    ['#work', 5, 1, 0.5],
    ['#late', 6, 4, 1],
  ]);
});

test('a shared box counts for what it holds, wherever the seam of two tiles is', () => {
  const many = { category: 1, start: 0, duration: 100, busy: 20, count: 9 };
  const whole = columnShares(scene(0, 100, tile(0, 100, [many])), 5, 3);
  const halves = columnShares(scene(0, 100, tile(0, 50, [many]), tile(50, 100, [many])), 5, 3);
  expect([...halves]).toEqual([...whole]);
  expect(whole[1]).toBeCloseTo(0.2);
  expect(whole.reduce((sum, share) => sum + share, 0)).toBeCloseTo(2);
});

test('a cause that reaches across tiles is named once, in all the room it has', () => {
  const part = { category: 2, start: 0, duration: 1000 };
  const written: [string, number][] = [];
  const context = {
    measureText: (text: string) => ({ width: text.length * 6 }),
    fillText: (text: string, x: number) => written.push([text, x]),
    fillRect: () => undefined,
  };
  for (const tiles of [[tile(0, 1000, [part])], [tile(0, 500, [part]), tile(500, 1000, [part])]]) {
    written.length = 0;
    const what = { ...scene(100, 1000, ...tiles), width: 240 };
    paintBlame(context as unknown as CanvasRenderingContext2D, what, row, 0);
    expect(written).toEqual([['Operators 1.00 µs', 4]]);
  }
});

test('outside of the steps nothing is drawn', () => {
  expect(drawnSlices(scene(0, 100, tile(0, 100, [{ category: 0, start: 50, duration: 10 }])))).toEqual([
    ['#work', 5, 1, 1],
  ]);
  expect(drawnSlices(scene(0, 100))).toEqual([]);
});

test('the part under the pointer is found; of parts in one box idle time comes before work', () => {
  const boxes = [
    { category: 0, start: 0, duration: 500 },
    { category: 2, start: 500, duration: 1 },
    { category: 0, start: 501, duration: 499 },
  ];
  const what = scene(0, 1000, tile(0, 1000, boxes));
  expect(hitTestBlame(what, row, 2)?.color).toBe(0);
  expect(hitTestBlame(scene(0, 100), row, 2)).toBeNull();
  const shared = [
    { category: 0, start: 0, duration: 90, busy: 60, count: 3 },
    { category: 1, start: 10, duration: 80, busy: 30, count: 4 },
  ];
  expect(hitTestBlame(scene(0, 1000, tile(0, 1000, shared)), row, 0.5)?.color).toBe(1);
});
