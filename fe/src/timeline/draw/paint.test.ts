import { expect, test } from 'vitest';
import type { Palette } from './colors';
import type { TrackRow } from './layout';
import { hitTest, paint } from './paint';
import type { Scene } from './scene';
import type { Tile } from '../tiles/tile';

interface Box {
  start: number;
  duration: number;
  count?: number;
  busy?: number;
}

function tile(begin: number, end: number, boxes: Box[]): Tile {
  const column = (pick: (box: Box, i: number) => number) => boxes.map(pick);
  return {
    begin,
    end,
    unit: 1,
    names: new Map(),
    shortNames: new Map(),
    lanes: new Map([[1, [{ depth: 0, first: 0, last: boxes.length }]]]),
    start: Float64Array.from(column(box => box.start)),
    duration: Float64Array.from(column(box => box.duration)),
    busy: Float64Array.from(column(box => box.busy ?? box.duration)),
    count: Uint32Array.from(column(box => box.count ?? 1)),
    event: Int32Array.from(column((_, i) => i)),
    name: Int32Array.from(column(() => 0)),
    color: Uint16Array.from(column(() => 0)),
  };
}

const row = {
  key: 't1',
  kind: 'slices',
  y: 0,
  height: 24,
  lane: 18,
  lanes: 3,
  more: 0,
  folded: false,
  pinned: false,
  group: 0,
  track: { id: 1, kind: 'thread' },
} as unknown as TrackRow;

const palette = {
  surface: '#fff',
  background: '#eee',
  grid: '#ddd',
  line: '#ccc',
  font: 'sans-serif',
  of: () => ({ fill: '#123456', ink: '#fff' }),
} as unknown as Palette;

function scene(window: { begin: number; end: number }, ...parts: Tile[]): Scene {
  return {
    width: 100,
    height: 100,
    window,
    origin: 0,
    layout: { rows: [row], height: 24 },
    scroll: 0,
    palette,
    tiles: parts.map(data => ({ begin: data.begin, end: data.end, data })),
    samples: [],
    blame: [],
    names: new Map(),
    highlight: null,
  };
}

/** What is filled with a slice's color: [from, to, alpha]. */
function drawnSlices(what: Scene): [number, number, number][] {
  const found: [number, number, number][] = [];
  const context = {
    globalAlpha: 1,
    fillStyle: '',
    measureText: (text: string) => ({ width: text.length * 6 }),
    fillText: () => undefined,
    fillRect(x: number, _y: number, width: number) {
      if (this.fillStyle === '#123456') {
        found.push([x, x + width, this.globalAlpha]);
      }
    },
  };
  paint(context as unknown as CanvasRenderingContext2D, what);
  return found;
}

test('a slice is drawn where it is, however short at least a pixel wide', () => {
  const boxes = [
    { start: 10, duration: 20 },
    { start: 50, duration: 0 },
  ];
  const found = drawnSlices(scene({ begin: 0, end: 100 }, tile(0, 1024, boxes)));
  expect(found).toEqual([
    [10, 29, 1],
    [50, 51, 1],
  ]);
});

test('a slice across the seam of two tiles is drawn once, whole, whichever tile is missing', () => {
  const long = { start: 5, duration: 90 };
  const first = tile(0, 50, [long]);
  const second = tile(50, 100, [long]);
  const window = { begin: 0, end: 100 };
  expect(drawnSlices(scene(window, first, second))).toEqual([[5, 94, 1]]);
  expect(drawnSlices(scene(window, second))).toEqual([[5, 94, 1]]);
});

test('a shared box is as solid as it is busy', () => {
  const box = { start: 0, duration: 10, count: 5 };
  const [[, , full]] = drawnSlices(scene({ begin: 0, end: 100 }, tile(0, 1024, [{ ...box, busy: 10 }]))) as [
    [number, number, number],
  ];
  const [[, , half]] = drawnSlices(scene({ begin: 0, end: 100 }, tile(0, 1024, [{ ...box, busy: 2 }]))) as [
    [number, number, number],
  ];
  expect(half).toBeLessThan(full);
});

test('what is under the pointer is what is drawn there, with a little patience', () => {
  const what = scene(
    { begin: 0, end: 1000 },
    tile(0, 1024, [
      { start: 100, duration: 200 },
      { start: 305, duration: 1 },
    ]),
  );
  expect(hitTest(what, row, 20, 10)?.event).toBe(0);
  expect(hitTest(what, row, 31, 10)?.event).toBe(1);
  expect(hitTest(what, row, 70, 10)).toBeNull();
  expect(hitTest(what, row, 20, 23)).toBeNull();
});

test('the lines of the ruler lie below all slices: none crosses a name', () => {
  const fills: string[] = [];
  const context = {
    globalAlpha: 1,
    fillStyle: '',
    measureText: (text: string) => ({ width: text.length * 6 }),
    fillText: () => undefined,
    fillRect() {
      fills.push(this.fillStyle);
    },
  };
  const all = scene({ begin: 0, end: 1000 }, tile(0, 1000, [{ start: 0, duration: 1000 }]));
  paint(context as unknown as CanvasRenderingContext2D, all);
  expect(fills).toContain('#ccc');
  expect(fills.lastIndexOf('#ccc')).toBeLessThan(fills.indexOf('#123456'));
});

test('the lines of the ruler do not show through a box that is not solid', () => {
  const fills: [string, number, number][] = [];
  const context = {
    globalAlpha: 1,
    fillStyle: '',
    measureText: (text: string) => ({ width: text.length * 6 }),
    fillText: () => undefined,
    fillRect(x: number, y: number, _width: number, height: number) {
      if (height < 24 && y < 20) {
        fills.push([this.fillStyle, x, this.globalAlpha]);
      }
    },
  };
  const box = { start: 0, duration: 1000, count: 5, busy: 100 };
  paint(context as unknown as CanvasRenderingContext2D, scene({ begin: 0, end: 1000 }, tile(0, 1024, [box])));
  const [last, ...lines] = fills.toReversed();
  expect(last).toEqual(['#123456', 0, 0.3 + 0.6 * 0.1]);
  expect(lines.length).toBeGreaterThan(0);
  expect(lines.every(([fill, , alpha]) => fill === '#fff' && alpha === 1)).toBe(true);
});
