// The one home of formatting: base units in (ns, bytes, ratios 0..1), text for people out. The same text as
// torch_tb_profiler/base/units.py writes; tests/golden/numbers.json holds both to it.

export interface Measure {
  value: string;
  unit: string;
}

/** Units from the smallest to the largest. */
type Units = readonly (readonly [scale: number, name: string])[];

const TIMES: Units = [
  [1, 'ns'],
  [1e3, 'µs'],
  [1e6, 'ms'],
  [1e9, 's'],
];
const BYTES: Units = [
  [1, 'B'],
  [2 ** 10, 'KiB'],
  [2 ** 20, 'MiB'],
  [2 ** 30, 'GiB'],
  [2 ** 40, 'TiB'],
];
const UNKNOWN = '–';
const MINUS = '−';

const numberFormats = new Map<number, Intl.NumberFormat>();

function numberFormat(digits: number): Intl.NumberFormat {
  const format =
    numberFormats.get(digits) ??
    new Intl.NumberFormat('en-US', {
      minimumSignificantDigits: digits,
      maximumSignificantDigits: digits,
      minimumFractionDigits: 0,
      maximumFractionDigits: 0,
      roundingPriority: 'morePrecision',
    });
  numberFormats.set(digits, format);
  return format;
}

/** The sign of what is below zero is as wide as a plus; a hyphen is a shorter line. */
export const withMinus = (number: string): string => number.replace('-', MINUS);

/** Three significant digits, but every digit of a whole number, thousands separated: 0.0123, 1.23, 12.3, 1,235. */
export function formatNumber(value: number, digits = 3): string {
  if (!Number.isFinite(value)) {
    return UNKNOWN;
  }
  return value === 0 ? '0' : withMinus(numberFormat(digits).format(value));
}

/** The largest unit of which a value is one or more once it is rounded: 999.5 µs is 1.00 ms. */
function unitOf(value: number, units: Units): readonly [scale: number, name: string] {
  let [unit] = units;
  for (const larger of units.slice(1)) {
    if (Math.abs(value) / unit![0] < larger[0] / unit![0] - 0.5) {
      break;
    }
    unit = larger;
  }
  return unit!;
}

function scaled(value: number, units: Units): Measure {
  const [scale, unit] = unitOf(value, units);
  return { value: formatNumber(value / scale), unit };
}

export const durationParts = (ns: number): Measure => scaled(ns, TIMES);

export function formatDuration(ns: number | null): string {
  if (ns === null) {
    return UNKNOWN;
  }
  const { value, unit } = durationParts(ns);
  return `${value} ${unit}`;
}

/** The unit that a duration is shown in, for axes and ranges. */
export function timeUnit(ns: number): { scale: number; unit: string } {
  const [scale, unit] = unitOf(ns, TIMES);
  return { scale, unit };
}

/** The unit that a size is shown in, for axes. */
export const byteUnit = (bytes: number): number => unitOf(bytes, BYTES)[0];

export function formatBytes(bytes: number | null): string {
  if (bytes === null) {
    return UNKNOWN;
  }
  const { value, unit } = scaled(bytes, BYTES);
  return Math.abs(bytes) < 1000 && Number.isInteger(bytes)
    ? `${withMinus(String(bytes))} B`
    : `${value} ${unit}`;
}

const TENTHS = new Intl.NumberFormat('en-US', { maximumFractionDigits: 1, signDisplay: 'negative' });
const WHOLE = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0, signDisplay: 'negative' });

/** 55.5%, 20%, 100%: at most one decimal, and <0.1% for the least above nothing. */
export function formatRatio(ratio: number | null): string {
  return ratio === null || !Number.isFinite(ratio) ? UNKNOWN : `${inPercent(ratio)}%`;
}

/** The difference of two shares: 5.1 points. */
export const formatPoints = (share: number): string => `${inPercent(share)} points`;

function inPercent(ratio: number): string {
  const percent = 100 * ratio;
  const text = withMinus((Math.abs(percent) >= 99.95 ? WHOLE : TENTHS).format(percent));
  return text === '0' && percent !== 0 ? `${percent < 0 ? MINUS : ''}<0.1` : text;
}

export const formatCount = (value: number): string => withMinus(value.toLocaleString('en-US'));

export const exactDuration = (ns: number): string =>
  `${withMinus(ns.toLocaleString('en-US', { maximumFractionDigits: 1 }))} ns`;

export function plural(count: number, noun: string, many = `${noun}s`): string {
  return `${formatCount(count)} ${count === 1 ? noun : many}`;
}
