// Tries the claims of the page: beside each stands what would make it false, and a drawn state in which that is so.
import { readFileSync } from 'node:fs';
import { cleanup } from '@testing-library/react';
import { expect, it } from 'vitest';
import { claimsOf } from './texts';

type Texts = () => string | Promise<string>;

/** A claim by its template: drawn where it holds and where it is false, or tried by a test elsewhere. */
type Claim =
  | {
      falseIf: string;
      /** Return the texts of a state in which the claim is made, and of one in which it must not be. */
      holds: Texts;
      other: Texts;
      /** What is looked for, if not the template with anything filled in. */
      says?: RegExp;
    }
  | {
      falseIf: string;
      /** "src/views/x/index.test.tsx: name of the test", or "tests/x/test_y.py::test_name". */
      triedBy: string;
    };

const SOURCES = import.meta.glob<string>(
  ['../**/*.{ts,tsx}', '!../**/*.test.*', '!../testing/**', '!../api/types.gen.ts'],
  { query: '?raw', import: 'default', eager: true },
);

/** The folders of src whose claims stand in a table of their own; folders below them are theirs, too. */
const FOLDERS = Object.keys(import.meta.glob('../**/claims.test.tsx')).map(path =>
  path.slice(3, -'/claims.test.tsx'.length),
);

/** Return the folder whose table has the claims of a source; undefined if none has. */
export const ownerOf = (path: string): string | undefined =>
  FOLDERS.filter(folder => path.startsWith(`${folder}/`)).toSorted((a, b) => b.length - a.length)[0];

/** Yield the path in src and the claims of each source that makes any. */
export function* claimsOfSources(): Generator<[path: string, claims: string[]]> {
  for (const [path, source] of Object.entries(SOURCES)) {
    const found = claimsOf(path, source);
    if (found.length > 0) {
      yield [path.slice(3), found];
    }
  }
}

/** Try all claims of a folder; `noClaims` has texts that only look like claims, with the reason. */
export function tryClaims(
  folder: string,
  claims: Record<string, Claim>,
  noClaims: Record<string, string> = {},
): void {
  it(`${folder}: every claim has what would make it false`, () => {
    const made = [...claimsOfSources()].flatMap(([path, found]) => (ownerOf(path) === folder ? found : []));
    const listed = [...Object.keys(claims), ...Object.keys(noClaims)];
    expect(listed.toSorted()).toEqual([...new Set(made)].toSorted());
  });
  for (const [template, claim] of Object.entries(claims)) {
    it(`${template}: not if ${claim.falseIf}`, async () => {
      if ('triedBy' in claim) {
        expect(testsOf(claim.triedBy)).toContain(nameOf(claim.triedBy));
        return;
      }
      const says = claim.says ?? patternOf(template);
      expect(await claim.holds()).toMatch(says);
      cleanup();
      expect(await claim.other()).not.toMatch(says);
    });
  }
}

const patternOf = (template: string): RegExp =>
  new RegExp(
    template
      .split('{}')
      .map(part => part.replace(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`))
      .join('[^\\n]*?'),
  );

const testsOf = (place: string): string => {
  const path = place.split(/::|: /)[0]!;
  return readFileSync(path.startsWith('src/') ? path : `../${path}`, 'utf8');
};

const nameOf = (place: string): string =>
  place.includes('::') ? `\ndef ${place.split('::')[1]}(` : `'${place.slice(place.indexOf(': ') + 2)}`;
