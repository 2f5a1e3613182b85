import { describe, expect, it } from 'vitest';
import { layOutLegend, plainColor, wrapText } from './picture';

describe('a saved picture', () => {
  it('writes mixed colors in a form that every program reads', () => {
    expect(plainColor('color(srgb 1 0.5 0)')).toBe('rgb(255, 128, 0)');
    expect(plainColor('color(srgb 0 0 1 / 0.25)')).toBe('rgba(0, 0, 255, 0.25)');
    expect(plainColor('rgb(1, 2, 3)')).toBe('rgb(1, 2, 3)');
  });

  it('wraps its title between words without losing any', () => {
    const lines = wrapText('memory of GPU 0 over time', 68);
    expect(lines.length).toBeGreaterThan(1);
    expect(lines.join(' ')).toBe('memory of GPU 0 over time');
    expect(lines.every(line => line.length <= 10)).toBe(true);
  });

  it('starts a new row of the legend where an entry does not fit', () => {
    expect(layOutLegend(['a', 'b'], 300).map(({ row }) => row)).toEqual([0, 0]);
    const [first, second] = layOutLegend(['a'.repeat(20), 'b'.repeat(20)], 200);
    expect(first).toEqual({ x: 0, row: 0 });
    expect(second).toEqual({ x: 0, row: 1 });
  });
});
