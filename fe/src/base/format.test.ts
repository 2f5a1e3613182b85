import { expect, it } from 'vitest';
import golden from '../../../tests/golden/numbers.json';
import {
  formatBytes,
  formatCount,
  formatDuration,
  formatNumber,
  formatPoints,
  formatRate,
  formatRatio,
  formatRatioLimit,
  formatLimit,
  roundDown,
  plural,
} from './format';

const FORMATS: Record<string, (value: never) => string> = {
  number: formatNumber,
  duration: formatDuration,
  bytes: formatBytes,
  ratio: formatRatio,
  rate: formatRate,
  count: formatCount,
};

// The table that the Python side follows too.
it.each(golden)('writes the $kind $value as $text', ({ kind, value, text }) => {
  expect(FORMATS[kind]!(value as never)).toBe(text);
});

it('rounds the most that a share may be up', () => {
  expect([0.2792, 0.279, 0.1 + 0.2, 0].map(formatRatioLimit)).toEqual(['28%', '27.9%', '30%', '0%']);
});

it('rounds what is saved at least down', () => {
  expect([116_950, 117_000, 11_100_000.000000002, 1.239, 0].map(roundDown)).toEqual([
    116_000, 117_000, 11_100_000, 1.23, 0,
  ]);
});

it('rounds what is saved at most up', () => {
  expect([116_250, 117_000, 11_100_000.000000002, 999_400, 0, null].map(formatLimit)).toEqual([
    '117 µs',
    '117 µs',
    '11.1 ms',
    '1.00 ms',
    '0 ns',
    '–',
  ]);
});

it('writes points', () => {
  expect([0.051, 0.0004, 0].map(formatPoints)).toEqual(['5.1 points', '<0.1 points', '0 points']);
});

it('writes plurals', () => {
  expect(plural(1, 'worker')).toBe('1 worker');
  expect(plural(1200, 'event')).toBe('1,200 events');
});
