import { expect, test } from 'vitest';
import { windowAround, clampWindow, panWindow, fullWindow, zoomWindow } from './viewport';

const extent = { begin: 0, end: 1_000_000 };

test('zooming keeps the instant under the pointer where it is', () => {
  const window = { begin: 200_000, end: 600_000 };
  for (const factor of [0.5, 0.9, 1.2]) {
    const at = 300_000;
    const next = zoomWindow(window, factor, at, extent);
    const share = (each: typeof window) => (at - each.begin) / (each.end - each.begin);
    expect(share(next)).toBeCloseTo(share(window), 9);
    expect(next.end - next.begin).toBeCloseTo(400_000 * factor, 6);
  }
});

test('no window leaves the recording or is too short to see', () => {
  const all = fullWindow(extent);
  for (const window of [
    panWindow({ begin: 0, end: 1000 }, -5_000_000, extent),
    panWindow({ begin: 0, end: 1000 }, 5_000_000, extent),
    zoomWindow({ begin: 10, end: 20 }, 1e-9, 15, extent),
    zoomWindow({ begin: 10, end: 20 }, 1e12, 15, extent),
    clampWindow({ begin: -1e12, end: 1e12 }, extent),
  ]) {
    expect(window.begin).toBeGreaterThanOrEqual(all.begin);
    expect(window.end).toBeLessThanOrEqual(all.end);
    expect(window.end - window.begin).toBeGreaterThanOrEqual(50);
  }
});

test('a slice that is shown has room on both sides, an instant too', () => {
  expect(windowAround({ begin: 400_000, end: 500_000 }, extent)).toEqual({ begin: 375_000, end: 525_000 });
  const instant = windowAround({ begin: 400_000, end: 400_000 }, extent);
  expect(instant.begin).toBeLessThan(400_000);
  expect(instant.end).toBeGreaterThan(400_000);
});
