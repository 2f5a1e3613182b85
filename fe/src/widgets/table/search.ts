// Search in tables: plain text without regard to case, or a regular expression.

export interface Search {
  text: string;
  regex: boolean;
}

export interface Matcher {
  test: (text: string) => boolean;
  /** Why the expression cannot be used; then nothing is filtered. */
  error?: string;
}

const ALL: Matcher = { test: () => true };

export function matcher({ text, regex }: Search): Matcher {
  if (!text) {
    return ALL;
  }
  if (!regex) {
    const words = text.toLowerCase();
    return { test: candidate => candidate.toLowerCase().includes(words) };
  }
  try {
    const expression = new RegExp(text, 'i');
    return { test: candidate => expression.test(candidate) };
  } catch (error) {
    const message = error instanceof Error ? error.message.replace(/^.*: /, '') : 'it cannot be read';
    return { ...ALL, error: `Not a regular expression: ${message}` };
  }
}
