import { describe, expect, it } from 'vitest';
import { formatBytes, formatDuration, formatNumber, formatRatio, plural } from './format';

describe('formatting', () => {
  it('keeps three significant digits and separates thousands', () => {
    expect(formatNumber(0.01234)).toBe('0.0123');
    expect(formatNumber(12.345)).toBe('12.3');
    expect(formatNumber(1234.5)).toBe('1,235');
  });

  it('chooses the unit per value, after rounding', () => {
    expect(formatDuration(89_000)).toBe('89.0 µs');
    expect(formatDuration(999_900)).toBe('1.00 ms');
    expect(formatDuration(177_592_000)).toBe('178 ms');
    expect(formatDuration(0)).toBe('0 ns');
    expect(formatBytes(34_084_028_416)).toBe('31.7 GiB');
  });

  it('writes shares and plurals', () => {
    expect(formatRatio(0.5551)).toBe('55.5 %');
    expect(formatRatio(1)).toBe('100 %');
    expect(plural(1, 'worker')).toBe('1 worker');
    expect(plural(1200, 'event')).toBe('1,200 events');
  });
});
