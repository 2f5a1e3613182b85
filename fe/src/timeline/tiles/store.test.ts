import { expect, test, vi } from 'vitest';
import { TILE_BUCKETS, levelOf, TileStore } from './store';

const extent = { begin: 0, end: 10 * TILE_BUCKETS };
const settled = () => new Promise(resolve => setTimeout(resolve));

function store(
  fetch = (begin: number, end: number, _signal: AbortSignal) => Promise.resolve(`${begin}-${end}`),
) {
  const arrived = vi.fn();
  const trouble = vi.fn();
  return { tiles: new TileStore(fetch, extent, arrived, trouble), arrived, trouble };
}

test('a bucket is a power of two and no wider than a pixel', () => {
  for (const ns of [0.2, 1, 3, 1000, 123_456]) {
    const level = levelOf(ns);
    expect(Math.log2(level) % 1).toBe(0);
    expect(level).toBeLessThanOrEqual(Math.max(ns, 1));
    expect(level * 2).toBeGreaterThan(ns);
  }
});

test('a window is covered by its tiles once they are here', async () => {
  const { tiles } = store();
  const window = { begin: 100, end: 2.5 * TILE_BUCKETS };
  tiles.request(window, 1);
  expect(tiles.loading).toBe(true);
  expect(tiles.cover(window, 1)).toEqual([]);
  await settled();
  expect(tiles.loading).toBe(false);
  expect(tiles.cover(window, 1).map(cover => [cover.begin, cover.end])).toEqual([
    [0, TILE_BUCKETS],
    [TILE_BUCKETS, 2 * TILE_BUCKETS],
    [2 * TILE_BUCKETS, 3 * TILE_BUCKETS],
  ]);
});

test('what is not here yet is drawn from a coarser tile', async () => {
  const { tiles } = store();
  tiles.request({ begin: 0, end: 4 * TILE_BUCKETS - 1 }, 4);
  await settled();
  const window = { begin: TILE_BUCKETS, end: 2 * TILE_BUCKETS - 1 };
  expect(tiles.cover(window, 1)).toEqual([
    { begin: TILE_BUCKETS, end: 2 * TILE_BUCKETS, data: `0-${4 * TILE_BUCKETS}` },
  ]);
  tiles.request(window, 1);
  await settled();
  expect(tiles.cover(window, 1)[0]!.data).toBe(`${TILE_BUCKETS}-${2 * TILE_BUCKETS}`);
});

test('what is no longer in sight is not waited for', async () => {
  const requests: [number, AbortSignal][] = [];
  const { tiles, trouble } = store((begin, _end, signal) => {
    requests.push([begin, signal]);
    return new Promise((_, fail) => signal.addEventListener('abort', () => fail(new Error('stopped'))));
  });
  tiles.request({ begin: 0, end: TILE_BUCKETS - 1 }, 1);
  tiles.request({ begin: 5 * TILE_BUCKETS, end: 6 * TILE_BUCKETS - 1 }, 1);
  await settled();
  expect(requests.map(([begin, signal]) => [begin, signal.aborted])).toEqual([
    [0, true],
    [5 * TILE_BUCKETS, false],
  ]);
  expect(trouble).not.toHaveBeenCalled();
});

test('a refused tile is said once and not asked for again and again', async () => {
  const fetch = vi.fn(() => Promise.reject(new Error('no')));
  const { tiles, trouble } = store(fetch);
  for (let i = 0; i < 3; i++) {
    tiles.request({ begin: 0, end: 10 }, 1);
    await settled();
  }
  expect(fetch).toHaveBeenCalledTimes(1);
  expect(trouble).toHaveBeenCalledTimes(1);
});
