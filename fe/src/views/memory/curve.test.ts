import { expect, test } from 'vitest';
import {
  bounds,
  byteTicks,
  outline,
  stacked,
  surface,
  valueAt,
  type SampledBytes,
  type DecodedCurve,
} from './curve';

const band = (rows: [number, number, number][]): SampledBytes => ({
  min: Float64Array.from(rows.map(row => row[0])),
  max: Float64Array.from(rows.map(row => row[1])),
  last: Float64Array.from(rows.map(row => row[2])),
});
const none = band([]);

function curve(times: number[], allocated: SampledBytes): DecodedCurve {
  return { begin: 0, end: 100, time: Float64Array.from(times), allocated, reserved: none };
}

const same = (value: number) => value;

test('a value holds until the next, upright', () => {
  const one = curve([0, 10, 50], band([[5, 5, 5], [9, 9, 9], [2, 2, 2]])); // prettier-ignore
  expect(outline(one, one.allocated, same, same)).toBe('M0,5L10,5L10,9L50,9L50,2L100,2L100,2');
  expect([0, 9, 10, 49, 50, 99].map(at => valueAt(one, one.allocated, at))).toEqual([5, 5, 9, 9, 2, 2]);
});

test('a bucket reaches its greatest and its least before it goes on', () => {
  const one = curve([0, 10], band([[1, 1, 1], [0, 30, 4]])); // prettier-ignore
  expect(outline(one, one.allocated, same, same)).toBe('M0,1L10,1L10,30L10,30L10,0L10,0L10,4L100,4L100,4');
  expect(surface(one, one.allocated, same, same)).toContain('L10,30');
  expect(bounds(one)).toEqual({ low: 0, high: 30 });
});

test('nothing is drawn before the first event', () => {
  const one = curve([0, 10], band([[NaN, NaN, NaN], [3, 3, 3]])); // prettier-ignore
  expect(outline(one, one.allocated, same, same)).toBe('M10,3L100,3L100,3');
  expect(valueAt(one, one.allocated, 5)).toBeNaN();
  expect(outline(one, none, same, same)).toBe('');
});

test('columns stand upon each other and hold until the next', () => {
  const paths = stacked(
    Float64Array.of(0, 10),
    [Float64Array.of(1, 2), Float64Array.of(5, 5)],
    20,
    same,
    same,
  );
  expect(paths[1]).toContain('M0,6L10,6L10,7L20,7');
  expect(stacked(new Float64Array(), [new Float64Array()], 1, same, same)).toEqual(['']);
});

test('an axis of bytes is round in its unit, below zero too', () => {
  const gib = 2 ** 30;
  expect(byteTicks(0, 3.3 * gib, 4)).toEqual([0, gib, 2 * gib, 3 * gib]);
  expect(byteTicks(-3, 3, 3)).toEqual([-2, 0, 2]);
});
