// The one home of formatting: base units in (ns, bytes, ratios 0..1), text for people out.

export interface Measure {
  value: string;
  unit: string;
}

const TIMES: [number, string][] = [
  [1e9, 's'],
  [1e6, 'ms'],
  [1e3, 'µs'],
  [1, 'ns'],
];
const BYTES: [number, string][] = [
  [2 ** 40, 'TiB'],
  [2 ** 30, 'GiB'],
  [2 ** 20, 'MiB'],
  [2 ** 10, 'KiB'],
  [1, 'B'],
];

/** Three significant digits, thousands separated: 0.0123, 1.23, 12.3, 1,235. */
export function formatNumber(value: number, digits = 3): string {
  if (!Number.isFinite(value)) {
    return '–';
  }
  if (value === 0) {
    return '0';
  }
  const magnitude = Math.floor(Math.log10(Math.abs(Number(value.toPrecision(digits)))));
  const decimals = Math.min(Math.max(digits - 1 - magnitude, 0), 6);
  return value.toLocaleString('en-US', { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
}

function scaled(value: number, table: [number, string][]): Measure {
  // 999.6 us is 1 ms: choose the unit after rounding.
  const size = Math.abs(value) * 1.0005;
  const [scale, unit] = table.find(([limit]) => size >= limit) ?? table[table.length - 1]!;
  return { value: formatNumber(value / scale), unit };
}

export const durationParts = (ns: number): Measure => scaled(ns, TIMES);

export function formatDuration(ns: number): string {
  const { value, unit } = durationParts(ns);
  return `${value} ${unit}`;
}

/** A duration in the unit that another one is shown in, for axes and ranges. */
export function timeUnit(ns: number): { scale: number; unit: string } {
  const { unit } = durationParts(ns);
  const found = TIMES.find(row => row[1] === unit)!;
  return { scale: found[0], unit };
}

export function formatBytes(bytes: number): string {
  const { value, unit } = scaled(bytes, BYTES);
  return `${value} ${unit}`;
}

export function formatRatio(ratio: number): string {
  const percent = 100 * ratio;
  return `${percent.toLocaleString('en-US', { maximumFractionDigits: percent >= 99.95 ? 0 : 1 })} %`;
}

export const formatCount = (value: number): string => value.toLocaleString('en-US');

export const exactDuration = (ns: number): string =>
  `${ns.toLocaleString('en-US', { maximumFractionDigits: 1 })} ns`;

export function plural(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}`;
}
