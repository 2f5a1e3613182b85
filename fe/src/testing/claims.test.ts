// Texts of the page that claim something are found, told from the others, and none is in no table.
import { expect, it } from 'vitest';
import { claimsOfSources, ownerOf } from './claims';
import { claimsOf } from './texts';

const claims = (source: string) => claimsOf('x.tsx', source);

it.each([
  ["const text = 'No kernels were recorded.';", ['No kernels were recorded.']],
  ['const text = `${n} of them are not compared`;', ['{} of them are not compared']],
  ['<p>It saves <b>{time}</b> at most here</p>;', ['It saves {} at most here']],
  [
    "<p>{one ? 'All of it is known.' : 'Some of it is unknown.'}</p>;",
    ['All of it is known.', 'Some of it is unknown.'],
  ],
  ["const text = 'One recording ' + 'can’t show it.';", ['One recording can’t show it.']],
  ['<i title="Nothing waits for it." />;', ['Nothing waits for it.']],
])('a claim is found in %s', (source, found) => {
  expect(claims(source)).toEqual(found);
});

it.each([
  "const title = 'Kernel time';",
  "const title = 'est. SM efficiency';",
  '<button title="Show all lanes" />;',
  "const text = 'Select a longer one.';",
  "const text = 'Why is there no clock?';",
  "const style = 'color-mix(in srgb, var(--c) 45%, only)';",
  "type Text = 'It is never known.';",
])('%s claims nothing', source => {
  expect(claims(source)).toEqual([]);
});

it('a definition of the glossary claims nothing, its caveat does', () => {
  const entry = "const GLOSSARY = { a: { title: 'A', text: 'It is never B.', caveat: 'It is never C.' } };";
  expect(claimsOf('base/glossary.ts', entry)).toEqual(['It is never C.']);
});

it('no source with claims is in no table', () => {
  const paths = [...claimsOfSources()].map(([path]) => path);
  expect(paths.length).toBeGreaterThan(50);
  expect(paths.filter(path => ownerOf(path) === undefined)).toEqual([]);
});
