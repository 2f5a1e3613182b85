import { describe, expect, it } from 'vitest';
import { foldSmall } from './FoldedLegend';

const fold = (values: number[], total = values.reduce((a, b) => a + b, 0)) =>
  foldSmall(values, value => value, total);

describe('foldSmall', () => {
  it('keeps the largest eight in their order', () => {
    const { shown, others } = fold([1, 9, 2, 8, 3, 7, 4, 6, 5, 10]);
    expect(shown).toEqual([9, 8, 3, 7, 4, 6, 5, 10]);
    expect(others).toEqual([1, 2]);
  });

  it('folds what is less than a thousandth of the whole, however few there are', () => {
    expect(fold([9990, 4, 3, 3])).toEqual({ shown: [9990], others: [4, 3, 3] });
    expect(fold([900, 50, 50]).others).toEqual([]);
  });

  it('never hides a single entry, as its line would be as long', () => {
    expect(fold([1000, 1])).toEqual({ shown: [1000, 1], others: [] });
    expect(fold([9, 9, 9, 9, 9, 9, 9, 9, 9]).others).toEqual([]);
  });
});
