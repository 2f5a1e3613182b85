import { expect, test } from 'vitest';
import { since, stepOf, ticks, wallClock } from './ticks';

test('ticks are round, apart, and counted from the origin', () => {
  const window = { begin: 1_234_567, end: 9_876_543 };
  const step = stepOf(window, 900, 90);
  expect([1, 2, 5]).toContain(step / 10 ** Math.floor(Math.log10(step)));
  const found = ticks(window, 900, 1_000_000);
  expect(found.length).toBeGreaterThan(4);
  expect(found.length).toBeLessThanOrEqual(11);
  for (const tick of found) {
    expect((tick.time - 1_000_000) % step).toBe(0);
    expect(tick.time).toBeGreaterThanOrEqual(window.begin);
    expect(tick.time).toBeLessThanOrEqual(window.end);
  }
  expect(new Set(found.map(tick => tick.label)).size).toBe(found.length);
});

test('neighboring ticks differ in writing at every zoom', () => {
  for (const span of [100, 5_000, 40_000_000, 3_600_000_000_000]) {
    const found = ticks({ begin: 1e9, end: 1e9 + span }, 1200, 0);
    expect(new Set(found.map(tick => tick.label)).size).toBe(found.length);
  }
});

test('times say what they are, before the origin too', () => {
  expect(since(0, 1000)).toBe('0');
  expect(since(1_500_000, 100_000)).toBe('1.5 ms');
  expect(since(-2_000, 1_000)).toBe('-2 µs');
});

test('the time of day is exact to the microsecond', () => {
  const epoch = Date.UTC(2026, 0, 2, 3, 4, 5) * 1e6;
  expect(wallClock(epoch, 678_912_000)).toBe('03:04:05.678912');
});
