import { expect, test } from 'vitest';
import { area, bounds, byteTicks, line, valueAt, type Band, type Curve } from './curve';

const band = (rows: [number, number, number][]): Band => ({
  min: Float64Array.from(rows.map(row => row[0])),
  max: Float64Array.from(rows.map(row => row[1])),
  last: Float64Array.from(rows.map(row => row[2])),
});
const none = band([]);

function curve(times: number[], allocated: Band): Curve {
  return { begin: 0, end: 100, time: Float64Array.from(times), allocated, reserved: none };
}

const same = (value: number) => value;

test('a value holds until the next, upright', () => {
  const one = curve([0, 10, 50], band([[5, 5, 5], [9, 9, 9], [2, 2, 2]])); // prettier-ignore
  expect(line(one, one.allocated, same, same)).toBe('M0.0,5.0V5.0H10.0V9.0H50.0V2.0H100.0');
  expect([0, 9, 10, 49, 50, 99].map(at => valueAt(one, one.allocated, at))).toEqual([5, 5, 9, 9, 2, 2]);
});

test('a bucket reaches its greatest and its least before it goes on', () => {
  const one = curve([0, 10], band([[1, 1, 1], [0, 30, 4]])); // prettier-ignore
  expect(line(one, one.allocated, same, same)).toBe('M0.0,1.0V1.0H10.0V30.0V0.0V4.0H100.0');
  expect(area(one, one.allocated, same, same)).toContain('V30.0');
  expect(bounds(one)).toEqual({ low: 0, high: 30 });
});

test('nothing is drawn before the first event', () => {
  const one = curve([0, 10], band([[NaN, NaN, NaN], [3, 3, 3]])); // prettier-ignore
  expect(line(one, one.allocated, same, same)).toBe('M10.0,3.0V3.0H100.0');
  expect(valueAt(one, one.allocated, 5)).toBeNaN();
  expect(line(one, none, same, same)).toBe('');
});

test('an axis of bytes has powers of two, below zero too', () => {
  const gib = 2 ** 30;
  expect(byteTicks(0, 3.3 * gib, 5)).toEqual([0, gib, 2 * gib, 3 * gib]);
  expect(byteTicks(-3, 3, 5)).toEqual([-2, 0, 2]);
});
