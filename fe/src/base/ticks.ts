// Round instants for the ruler, and how an instant is written.
import { formatNumber, timeUnit } from './format';
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

/** Round steps of 1, 2, 5 that leave `apart` pixels between them. */
export function stepOf(window: Span, width: number, apart: number): number {
  const rough = ((window.end - window.begin) / Math.max(width, 1)) * apart;
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  return power * ([1, 2, 5, 10].find(factor => factor * power >= rough) ?? 10);
}

/** Ticks counted from `origin`. */
export function ticks(window: Span, width: number, origin: number): Tick[] {
  const step = stepOf(window, width, 90);
  const found = [];
  for (let i = Math.ceil((window.begin - origin) / step); origin + i * step <= window.end; i++) {
    found.push({ time: origin + i * step, label: since(i * step, step) });
  }
  return found;
}

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
  return `${text} ${unit}`;
}

/** The time of day of an instant, to the microsecond; `epoch` is that of the trace's start in ns. */
export function wallClock(epoch: number, ns: number): string {
  const micros = Math.floor((epoch + ns) / 1000);
  const date = new Date(Math.floor(micros / 1000));
  const time = date.toISOString().slice(11, 23);
  return `${time}${String(((micros % 1000) + 1000) % 1000).padStart(3, '0')}`;
}

export const exactTime = (ns: number): string => `${formatNumber(Math.round(ns), 15)} ns`;
