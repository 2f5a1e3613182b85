// Which entries of a legend are shown at first: many are too small to see in what it explains.

/** Most entries of a folded legend, and the smallest share of the whole for one of its own. */
const MAX_ENTRIES = 8;
const MIN_SHARE = 0.001;

interface Folded<T> {
  shown: T[];
  others: T[];
}

/** Return the entries that are large enough, in their order, and the others; a single other one is shown too. */
export function foldSmall<T>(entries: readonly T[], valueOf: (entry: T) => number, total: number): Folded<T> {
  const largest = entries
    .toSorted((a, b) => valueOf(b) - valueOf(a))
    .slice(0, MAX_ENTRIES)
    .filter(entry => valueOf(entry) >= MIN_SHARE * total);
  const shownEntries = new Set(largest);
  const others = entries.filter(entry => !shownEntries.has(entry));
  return others.length < 2
    ? { shown: [...entries], others: [] }
    : { shown: entries.filter(entry => shownEntries.has(entry)), others };
}
