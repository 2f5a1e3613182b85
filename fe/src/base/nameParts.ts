// Where names that begin alike differ, so that a narrow column can keep what tells them apart.

/** Letters at the beginning of a name that are shown however narrow the column is. */
const MIN_HEAD_LENGTH = 10;
/** Letters before a difference that are kept where a word begins among them. */
const MAX_WORD_DISTANCE = 3;
/** Differences fewer letters apart than this are shown together. */
const MIN_PART_LENGTH = 3;

/**
 * Return the parts of each name that differs from another one only after `MIN_HEAD_LENGTH` letters.
 *
 * Every part but the first begins where another name continues differently. Cut at their ends, the parts show the
 * difference between any two names; cut as a whole, both would look the same.
 */
export function splitNames(names: Iterable<string>): Map<string, readonly string[]> {
  const sorted = [...new Set(names)].filter(name => name.length > MIN_HEAD_LENGTH).sort();
  const before = differences(sorted);
  const after = differences(sorted.toReversed()).reverse();
  const parts = new Map<string, readonly string[]>();
  sorted.forEach((name, i) => {
    const found = cut(name, [...new Set([...before[i]!, ...after[i]!])]);
    if (found.length > 1) {
      parts.set(name, found);
    }
  });
  return parts;
}

/** Return for each of the sorted names the letters at which it differs from those before it. */
function differences(sorted: readonly string[]): number[][] {
  let open: number[] = [];
  return sorted.map((name, i) => {
    if (i > 0) {
      const common = commonLength(sorted[i - 1]!, name);
      open = [...open.filter(letter => letter < common), common];
    }
    return open;
  });
}

function commonLength(a: string, b: string): number {
  let length = 0;
  while (length < a.length && a[length] === b[length]) {
    length++;
  }
  return length;
}

function cut(name: string, letters: number[]): string[] {
  const parts: string[] = [];
  let begin = 0;
  for (const letter of letters.sort((a, b) => a - b)) {
    if (letter >= MIN_HEAD_LENGTH && letter - begin >= MIN_PART_LENGTH && letter < name.length) {
      const start = Math.max(wordStart(name, letter), begin + 1);
      parts.push(name.slice(begin, start));
      begin = start;
    }
  }
  return [...parts, name.slice(begin)];
}

/** Return where the word of a letter begins if that is near, else the letter's own place. */
function wordStart(name: string, position: number): number {
  // A letter of two code units is a whole one, and none that a word begins after.
  const letter = /^\p{Surrogate}/u.test(name.slice(position)) ? position - 1 : position;
  for (let start = letter; start > letter - MAX_WORD_DISTANCE; start--) {
    if (/[^\p{L}\p{N}\p{Surrogate}]/u.test(name[start - 1]!)) {
      return start;
    }
  }
  return letter;
}
