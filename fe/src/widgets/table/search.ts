// Search in tables: case-insensitive text, or a regular expression.

export interface Search {
  text: string;
  regex: boolean;
}

interface Matcher {
  test: (text: string) => boolean;
  /** Why the expression is invalid; then nothing is filtered out. */
  error?: string;
}

const MATCH_ALL: Matcher = { test: () => true };

export function createMatcher({ text, regex }: Search): Matcher {
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
