import { describe, expect, it } from 'vitest';
import { placed, plainColor, wrapped } from './picture';

describe('a saved picture', () => {
  it('writes mixed colors as every program reads them', () => {
    expect(plainColor('color(srgb 1 0.5 0)')).toBe('rgb(255, 128, 0)');
    expect(plainColor('color(srgb 0 0 1 / 0.25)')).toBe('rgba(0, 0, 255, 0.25)');
    expect(plainColor('rgb(1, 2, 3)')).toBe('rgb(1, 2, 3)');
  });

  it('wraps its title between words and loses none', () => {
    const lines = wrapped('memory of GPU 0 over time', 68);
    expect(lines.length).toBeGreaterThan(1);
    expect(lines.join(' ')).toBe('memory of GPU 0 over time');
    expect(lines.every(line => line.length <= 10)).toBe(true);
  });

  it('puts what does not fit beside the last entry of the legend on a new line', () => {
    expect(placed(['a', 'b'], 300).map(({ row }) => row)).toEqual([0, 0]);
    const [first, second] = placed(['a'.repeat(20), 'b'.repeat(20)], 200);
    expect(first).toEqual({ x: 0, row: 0 });
    expect(second).toEqual({ x: 0, row: 1 });
  });
});
