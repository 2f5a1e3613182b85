// Round instants for the ruler, and how an instant is written.
import { range, ticks as d3Ticks, tickStep } from 'd3-array';
import { tickFormat } from 'd3-scale';
import { timeUnit, withMinus } from './format';

/** A stretch of time, ns. */
export interface Span {
  begin: number;
  end: number;
}

export type Clock = 'trace' | 'step' | 'wall';

export interface Tick {
  time: number;
  label: string;
}

/** Pixels between ticks, about; the round steps make it 0.63 to 1.58 times as many. */
const APART = 140;

/** The round step (1, 2 or 5 times a power of ten) that leaves about `apart` pixels between instants; whole ns. */
export function stepOf({ begin, end }: Span, width: number, apart: number): number {
  return Math.max(tickStep(begin, end, Math.max(width, 1) / apart), 1);
}

/** Ticks counted from `origin`. */
export function ticks(window: Span, width: number, origin: number): Tick[] {
  const step = stepOf(window, width, APART);
  const first = Math.ceil((window.begin - origin) / step);
  const last = Math.floor((window.end - origin) / step);
  return range(first, last + 1).map(i => ({ time: origin + i * step, label: since(i * step, step) }));
}

/** Round values for an axis, in a unit: round in GiB is not round in bytes. */
export const roundValues = (low: number, high: number, count: number, unit = 1): number[] =>
  d3Ticks(low / unit, high / unit, count).map(value => value * unit);

/** Writes values of an axis, all with as many decimals as tell neighbors apart. */
export const axisLabel = (low: number, high: number, count: number): ((value: number) => string) =>
  tickFormat(low, high, count, ',f');

/** A time with as many digits as tell neighbors apart that lie `step` away. */
export function since(ns: number, step: number): string {
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

/** The time of day of an instant, to the microsecond; `epoch` is that of the trace's start in ns. */
export function wallClock(epoch: number, ns: number): string {
  const micros = Math.floor((epoch + ns) / 1000);
  const date = new Date(Math.floor(micros / 1000));
  const time = date.toISOString().slice(11, 23);
  return `${time}${String(((micros % 1000) + 1000) % 1000).padStart(3, '0')}`;
}
