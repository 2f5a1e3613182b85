// Numbers on the page come only from base/format.
import { expect, it } from 'vitest';

const SOURCES = import.meta.glob<string>(['../**/*.{ts,tsx}', '!../**/*.test.*', '!../api/types.gen.ts'], {
  query: '?raw',
  import: 'default',
  eager: true,
});

const findInSources = (pattern: RegExp): string[] =>
  Object.entries(SOURCES).flatMap(([path, text]) =>
    (text.match(pattern) ?? []).map(match => `${path}: ${match}`),
  );

const COUNT_WITHOUT_PLURAL = /(?:formatCount\([^`]*?\)|\.length)\}\s+[a-z]+s\b(?! of)/g;

it('writes counts with plural(), which knows 1 from many', () => {
  expect('{formatCount(n)} rows').toMatch(COUNT_WITHOUT_PLURAL);
  expect(findInSources(COUNT_WITHOUT_PLURAL)).toEqual([]);
});

const DIRECT_FORMAT = /toLocaleString\('en-US'|(?<!axisLabel = .*)\bIntl\.NumberFormat/g;

it('writes numbers in one place, with one minus sign', () => {
  expect("n.toLocaleString('en-US')").toMatch(DIRECT_FORMAT);
  expect(
    findInSources(DIRECT_FORMAT).filter(match => !/^\.\.\/base\/(?:format|ticks)\.ts/.test(match)),
  ).toEqual([]);
});
