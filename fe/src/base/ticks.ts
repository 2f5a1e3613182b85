// Round values for rulers and axes, and the text of an instant.
import { range, ticks as d3Ticks, tickStep } from 'd3-array';
import { tickFormat } from 'd3-scale';
import { timeUnit, withMinus } from './format';

/** Begin and end, ns. */
interface TimeRange {
  begin: number;
  end: number;
}

export type Clock = 'trace' | 'step' | 'wall';

export interface Tick {
  time: number;
  label: string;
}

/** Pixels between ticks; rounding the step makes it 0.63 to 1.58 times as many. */
const TICK_SPACING_PX = 140;

/** Return the round step (1, 2, or 5 times a power of ten, at least 1 ns) that puts ticks about `spacing` pixels apart. */
export function roundStep({ begin, end }: TimeRange, width: number, spacing: number): number {
  return Math.max(tickStep(begin, end, Math.max(width, 1) / spacing), 1);
}

/** Return the ticks of a ruler that counts from `origin`. */
export function ticks(window: TimeRange, width: number, origin: number): Tick[] {
  const step = roundStep(window, width, TICK_SPACING_PX);
  const first = Math.ceil((window.begin - origin) / step);
  const last = Math.floor((window.end - origin) / step);
  return range(first, last + 1).map(i => ({ time: origin + i * step, label: formatOffset(i * step, step) }));
}

/** Return values that are round in `unit`: a round number of GiB isn't a round number of bytes. */
export const roundTickValues = (low: number, high: number, count: number, unit = 1): number[] =>
  d3Ticks(low / unit, high / unit, count).map(value => value * unit);

/** Return the function that formats the values of an axis with as many decimals as neighbors need to differ. */
export const axisFormat = (low: number, high: number, count: number): ((value: number) => string) =>
  tickFormat(low, high, count, ',f');

/** Return a time relative to the origin, with as many decimals as neighbors `step` ns away need to differ. */
export function formatOffset(ns: number, step: number): string {
  if (ns === 0) {
    return '0';
  }
  const { scale, unit } = timeUnit(Math.max(Math.abs(ns), step));
  const decimals = Math.min(Math.max(0, Math.ceil(Math.log10(scale / step) - 1e-9)), 9);
  const text = (ns / scale).toLocaleString('en-US', {
    minimumFractionDigits: decimals,
    maximumFractionDigits: decimals,
  });
  return `${withMinus(text)} ${unit}`;
}

/** Return the time of day of an instant to the microsecond; `epoch` is the Unix time of the trace's start, ns. */
export function formatTimeOfDay(epoch: number, ns: number): string {
  const micros = Math.floor((epoch + ns) / 1000);
  const date = new Date(Math.floor(micros / 1000));
  const time = date.toISOString().slice(11, 23);
  return `${time}${String(((micros % 1000) + 1000) % 1000).padStart(3, '0')}`;
}
