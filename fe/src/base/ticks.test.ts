import { expect, test } from 'vitest';
import { axisFormat, formatOffset, roundStep, ticks, formatTimeOfDay } from './ticks';

test('ticks are round, spaced, and relative to the origin', () => {
  const window = { begin: 1_234_567, end: 9_876_543 };
  const step = roundStep(window, 900, 140);
  expect([1, 2, 5]).toContain(step / 10 ** Math.floor(Math.log10(step)));
  const marks = ticks(window, 900, 1_000_000);
  expect(marks.length).toBeGreaterThan(3);
  expect(marks.length).toBeLessThanOrEqual(11);
  for (const tick of marks) {
    expect((tick.time - 1_000_000) % step).toBe(0);
    expect(tick.time).toBeGreaterThanOrEqual(window.begin);
    expect(tick.time).toBeLessThanOrEqual(window.end);
  }
  expect(new Set(marks.map(tick => tick.label)).size).toBe(marks.length);
});

test('ticks keep their distance at every zoom', () => {
  for (let span = 100; span < 1e13; span *= 1.37) {
    const marks = ticks({ begin: 1e9, end: 1e9 + span }, 1200, 0);
    const apart = (((marks[1]?.time ?? Infinity) - (marks[0]?.time ?? 0)) / span) * 1200;
    expect(apart).toBeGreaterThan(85);
  }
});

test('labels of neighboring ticks differ at every zoom', () => {
  for (const span of [100, 5_000, 40_000_000, 3_600_000_000_000]) {
    const marks = ticks({ begin: 1e9, end: 1e9 + span }, 1200, 0);
    expect(new Set(marks.map(tick => tick.label)).size).toBe(marks.length);
  }
});

test('times have units, also before the origin', () => {
  expect(formatOffset(0, 1000)).toBe('0');
  expect(formatOffset(1_500_000, 100_000)).toBe('1.5 ms');
  expect(formatOffset(-2_000, 1_000)).toBe('−2 µs');
});

test('the time of day is exact to the microsecond', () => {
  const epoch = Date.UTC(2026, 0, 2, 3, 4, 5) * 1e6;
  expect(formatTimeOfDay(epoch, 678_912_000)).toBe('03:04:05.678912');
});

test('values of an axis have the same decimals', () => {
  expect([2, 8, 10].map(axisFormat(0, 10, 5))).toEqual(['2', '8', '10']);
  expect([0.5, 1, 1.5].map(axisFormat(0, 1.6, 4))).toEqual(['0.5', '1.0', '1.5']);
});
