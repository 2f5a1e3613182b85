// Text of numbers and names: takes base units (ns, bytes, ratios from 0 to 1). torch_tb_profiler/base/format.py writes the
// same text; tests/golden/numbers.json checks both.

/** A number with its unit, such as "1.23" and "ms". */
interface Measure {
  value: string;
  unit: string;
}

/** Units in increasing order. */
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
/** Powers of ten, as bandwidths of memories and links are given. */
const RATES: Units = [
  [1, 'B/s'],
  [1e3, 'KB/s'],
  [1e6, 'MB/s'],
  [1e9, 'GB/s'],
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

/** Replace the hyphen of a negative number by a minus sign, which is as wide as a plus. */
export const withMinus = (number: string): string => number.replace('-', MINUS);

/** Return three significant digits, but all digits before the decimal point: 0.0123, 1.23, 12.3, 1,235. */
export function formatNumber(value: number, digits = 3): string {
  if (!Number.isFinite(value)) {
    return UNKNOWN;
  }
  return value === 0 ? '0' : withMinus(numberFormat(digits).format(value));
}

/** Return the largest unit in which the rounded value is at least 1: 999.5 µs is 1.00 ms. */
function chooseUnit(value: number, units: Units): readonly [scale: number, name: string] {
  let [unit] = units;
  for (const larger of units.slice(1)) {
    if (Math.abs(value) / unit![0] < larger[0] / unit![0] - 0.5) {
      break;
    }
    unit = larger;
  }
  return unit!;
}

function scaleToUnit(value: number, units: Units): Measure {
  const [scale, unit] = chooseUnit(value, units);
  return { value: formatNumber(value / scale), unit };
}

export const durationParts = (ns: number): Measure => scaleToUnit(ns, TIMES);

export function formatDuration(ns: number | null): string {
  if (ns === null) {
    return UNKNOWN;
  }
  const { value, unit } = durationParts(ns);
  return `${value} ${unit}`;
}

/** Return a function that rounds a positive number to three significant digits. */
const roundDigits = (round: (value: number) => number) => (value: number) => {
  if (value <= 0 || !Number.isFinite(value)) {
    return value;
  }
  const digits = Number(value.toPrecision(12)); // sums of floats get the last digits wrong
  const exponent = Math.floor(Math.log10(digits)) - 2;
  const step = 10 ** Math.abs(exponent);
  return exponent < 0 ? round(digits * step) / step : round(digits / step) * step;
};

/** Return a positive number rounded up to three significant digits: what is "at most" that is at most what is shown. */
export const roundUp = roundDigits(Math.ceil);

/** Return a positive number rounded down to three significant digits: what is "at least" that is at least what is shown. */
export const roundDown = roundDigits(Math.floor);

/** Format the most that a duration may be. */
export const formatLimit = (ns: number | null): string => formatDuration(ns === null ? null : roundUp(ns));

/** Return the unit in which a duration is shown, for axes and ranges. */
export function timeUnit(ns: number): { scale: number; unit: string } {
  const [scale, unit] = chooseUnit(ns, TIMES);
  return { scale, unit };
}

/** Return the bytes of the unit in which a size is shown, for axes. */
export const byteUnit = (bytes: number): number => chooseUnit(bytes, BYTES)[0];

export function formatBytes(bytes: number | null): string {
  if (bytes === null) {
    return UNKNOWN;
  }
  const { value, unit } = scaleToUnit(bytes, BYTES);
  return Math.abs(bytes) < 1000 && Number.isInteger(bytes)
    ? `${withMinus(String(bytes))} B`
    : `${value} ${unit}`;
}

export const rateParts = (bytesPerSecond: number): Measure => scaleToUnit(bytesPerSecond, RATES);

export function formatRate(bytesPerSecond: number): string {
  const { value, unit } = rateParts(bytesPerSecond);
  return `${value} ${unit}`;
}

const ONE_DECIMAL = new Intl.NumberFormat('en-US', { maximumFractionDigits: 1, signDisplay: 'negative' });
const NO_DECIMAL = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0, signDisplay: 'negative' });

/** Return a share as a percentage with at most one decimal: 55.5%, 20%, 100%, and <0.1% for anything smaller. */
export function formatRatio(ratio: number | null): string {
  return ratio === null || !Number.isFinite(ratio) ? UNKNOWN : `${percentText(ratio)}%`;
}

/** Format the most that a share may be, in percent with one decimal. */
export const formatRatioLimit = (ratio: number): string =>
  formatRatio(Math.ceil(Number((1000 * ratio).toPrecision(12))) / 1000);

/** Return the difference of two shares: "5.1 points". */
export const formatPoints = (share: number): string => `${percentText(share)} points`;

function percentText(ratio: number): string {
  const percent = 100 * ratio;
  const text = withMinus((Math.abs(percent) >= 99.95 ? NO_DECIMAL : ONE_DECIMAL).format(percent));
  return text === '0' && percent !== 0 ? `${percent < 0 ? MINUS : ''}<0.1` : text;
}

export const formatCount = (value: number): string => withMinus(value.toLocaleString('en-US'));

export const exactDuration = (ns: number): string =>
  `${withMinus(ns.toLocaleString('en-US', { maximumFractionDigits: 1 }))} ns`;

export function plural(count: number, noun: string, many = `${noun}s`): string {
  return `${formatCount(count)} ${count === 1 ? noun : many}`;
}

/** Kinds of devices that have a name of their own; all others are called GPU. */
const DEVICE_KINDS = new Set(['XPU', 'HPU', 'NPU', 'MTIA', 'MPS', 'MAIA', 'XLA', 'IPU']);

/** Return the name of a device, "GPU 0" or "HPU 1", like `device_name` in Python. */
export const deviceName = (kind: string, id: number | string): string =>
  `${DEVICE_KINDS.has(kind) ? kind : 'GPU'} ${id}`;

const COUNTER_FORMATS: Record<string, (value: number) => string> = {
  ratio: formatRatio,
  bytes: formatBytes,
  'bytes/s': value => `${formatBytes(value)}/s`,
  '/s': value => `${formatNumber(value)}/s`,
};

/** Return the function that formats the values of a counter with this unit. */
export const counterFormat = (unit: string): ((value: number) => string) =>
  COUNTER_FORMATS[unit] ?? formatNumber;

/** What is too small to show has no sign: "<0.1%". */
const withSign = (value: number, text: string): string =>
  `${text.startsWith('<') ? '' : value > 0 ? '+' : value < 0 ? '−' : ''}${text}`;

/** Format differences with their sign: of times, of sizes, relative, of two shares. */
export const formatSignedDuration = (ns: number): string =>
  ns === 0 ? '0' : withSign(ns, formatDuration(Math.abs(ns)));
export const formatSignedBytes = (bytes: number): string => withSign(bytes, formatBytes(Math.abs(bytes)));
export const formatSignedRatio = (ratio: number): string => withSign(ratio, formatRatio(Math.abs(ratio)));
export const formatSignedPoints = (share: number): string => withSign(share, formatPoints(Math.abs(share)));
