import { expect, it } from 'vitest';
import { namedRows } from './HeatMap';

it('names every n-th row and each marked one, without two names in one place', () => {
  expect(namedRows(5, 1)).toEqual([0, 1, 2, 3, 4]);
  expect(namedRows(100, 23, new Set([70]))).toEqual([0, 23, 46, 70]);
  expect(namedRows(100, 23, new Set([60]))).toEqual([0, 23, 60, 92]);
  expect(namedRows(100, 23, new Set([60, 61]))).toEqual([0, 23, 60, 92]);
});
