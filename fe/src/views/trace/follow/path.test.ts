import { expect, test } from 'vitest';
import type { TracePath } from '../../../api/types';
import type { Highlight } from '../../../timeline/contract';
import { highlightPath, nextOnPath } from './path';

type Track = Parameters<Highlight>[0];
const track = (id: number) => ({ id, kind: 'thread' }) as Track;

// A slice (5), in it another (6), the first again, then the device (9) on track 2.
const path: TracePath = {
  event: [5, 6, 5, 9],
  track: [1, 1, 1, 2],
  begin_ns: [0, 10, 20, 40],
  end_ns: [10, 20, 30, 90],
  more: 0,
};

test('what the path passes through on its track is highlighted, whatever shares a box', () => {
  const highlight = highlightPath(path)!;
  expect(highlight(track(1), 5, 0, 35, 0)).toBe(true);
  expect(highlight(track(1), 77, 25, 60, 0)).toBe(true); // a box with some of the path in it
  expect(highlight(track(1), 77, 30, 60, 0)).toBe(false); // only touches it
  expect(highlight(track(1), 77, 45, 60, 0)).toBe(false); // the path is on the device then
  expect(highlight(track(2), 77, 0, 40, 0)).toBe(false);
  expect(highlight(track(2), 9, 41, 40, 0)).toBe(true); // shorter than what times are rounded to
  expect(highlight(track(3), 77, 0, 90, 0)).toBe(false);
});

test('without a path nothing fades', () => {
  expect(highlightPath({ event: [], track: [], begin_ns: [], end_ns: [], more: 0 })).toBeNull();
});

test('the walk goes on to another slice, and ends where the path does', () => {
  expect(nextOnPath(path, 0, 1)).toBe(1);
  expect(nextOnPath(path, 2, -1)).toBe(1);
  expect(nextOnPath(path, 2, 1)).toBe(3);
  expect(nextOnPath(path, 3, 1)).toBeUndefined();
  expect(nextOnPath(path, 0, -1)).toBeUndefined();
  expect(nextOnPath({ ...path, event: [5, 5, 5, 9] }, 0, 1)).toBe(3);
});
