// Numbers for people come from base/format alone, whoever shows them.
import { expect, it } from 'vitest';

const SOURCES = import.meta.glob<string>(['../**/*.{ts,tsx}', '!../**/*.test.*', '!../api/types.gen.ts'], {
  query: '?raw',
  import: 'default',
  eager: true,
});

const found = (pattern: RegExp): string[] =>
  Object.entries(SOURCES).flatMap(([path, text]) =>
    (text.match(pattern) ?? []).map(match => `${path}: ${match}`),
  );

const COUNTED = /(?:formatCount\([^`]*?\)|\.length)\}\s+[a-z]+s\b(?! of)/g;

it('says how many of what with the noun in its number', () => {
  expect('{formatCount(n)} rows').toMatch(COUNTED);
  expect(found(COUNTED)).toEqual([]);
});

const WRITTEN = /toLocaleString\('en-US'|(?<!axisLabel = .*)\bIntl\.NumberFormat/g;

it('writes numbers in one place, with one minus sign', () => {
  expect("n.toLocaleString('en-US')").toMatch(WRITTEN);
  expect(found(WRITTEN).filter(each => !/^\.\.\/base\/(?:format|ticks)\.ts/.test(each))).toEqual([]);
});
