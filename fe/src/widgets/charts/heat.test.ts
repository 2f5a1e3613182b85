import { expect, it } from 'vitest';
import { colorStrength, columnMaxima, labeledRows, logScaleMin, niceInterval } from './heat';

it('labels every n-th row and each highlighted one, without two labels in one place', () => {
  expect(labeledRows(5, 1)).toEqual([0, 1, 2, 3, 4]);
  expect(labeledRows(100, 23, new Set([70]))).toEqual([0, 23, 46, 70]);
  expect(labeledRows(100, 23, new Set([60]))).toEqual([0, 23, 60, 92]);
  expect(labeledRows(100, 23, new Set([60, 61]))).toEqual([0, 23, 60, 92]);
});

it('separates values far below the maximum on a logarithmic scale', () => {
  expect(colorStrength(1, 1000)).toBe(0.001);
  expect(colorStrength(10, 1000, true)).toBeCloseTo(1 / 3);
  expect(colorStrength(1000, 1000, true)).toBe(1);
  expect(colorStrength(logScaleMin(1000), 1000, true)).toBe(0);
  expect([colorStrength(0, 1000, true), colorStrength(-5, 1000, true), colorStrength(5, 0, true)]).toEqual([
    0, 0, 0,
  ]);
});

it('takes the greatest known value of every column', () => {
  expect(
    columnMaxima(
      [
        [1, null, null],
        [4, null, 0],
      ],
      3,
    ),
  ).toEqual([4, null, 0]);
  expect(columnMaxima([], 2)).toEqual([null, null]);
});

it('labels columns at round intervals', () => {
  expect([0.2, 1, 1.1, 2.5, 5, 7, 17, 40, 200.5].map(niceInterval)).toEqual([1, 1, 2, 5, 5, 10, 20, 50, 500]);
});
