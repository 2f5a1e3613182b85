// Search in tables: case-insensitive text, or a regular expression.
import type { TableSearch } from '../../state/table';

interface Matcher {
  test: (text: string) => boolean;
  /** Why the expression is invalid; then nothing is filtered out. */
  error?: string;
}

const MATCH_ALL: Matcher = { test: () => true };

/** Return what tells whether a text matches a search. */
export function createMatcher({ text, regex }: TableSearch): Matcher {
  if (!text) {
    return MATCH_ALL;
  }
  if (!regex) {
    const lowerText = text.toLowerCase();
    return { test: candidate => candidate.toLowerCase().includes(lowerText) };
  }
  try {
    const expression = new RegExp(text, 'i');
    return { test: candidate => expression.test(candidate) };
  } catch (error) {
    const message = error instanceof Error ? error.message.replace(/^.*: /, '') : 'invalid syntax';
    return { ...MATCH_ALL, error: `Not a regular expression: ${message}` };
  }
}
