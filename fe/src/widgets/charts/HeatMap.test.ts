import { expect, it } from 'vitest';
import { columnMaxima, least, namedRows, roundNumber, strength } from './heat';

it('names every n-th row and each marked one, without two names in one place', () => {
  expect(namedRows(5, 1)).toEqual([0, 1, 2, 3, 4]);
  expect(namedRows(100, 23, new Set([70]))).toEqual([0, 23, 46, 70]);
  expect(namedRows(100, 23, new Set([60]))).toEqual([0, 23, 60, 92]);
  expect(namedRows(100, 23, new Set([60, 61]))).toEqual([0, 23, 60, 92]);
});

it('tells what is far below the greatest apart on a logarithmic scale', () => {
  expect(strength(1, 1000)).toBe(0.001);
  expect(strength(10, 1000, true)).toBeCloseTo(1 / 3);
  expect(strength(1000, 1000, true)).toBe(1);
  expect(strength(least(1000), 1000, true)).toBe(0);
  expect([strength(0, 1000, true), strength(-5, 1000, true), strength(5, 0, true)]).toEqual([0, 0, 0]);
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

it('names columns in steps of round numbers', () => {
  expect([0.2, 1, 1.1, 2.5, 5, 7, 17, 40, 200.5].map(roundNumber)).toEqual([1, 1, 2, 5, 5, 10, 20, 50, 500]);
});
