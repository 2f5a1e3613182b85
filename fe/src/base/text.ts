// Words that the server made.

/** A part of a sentence; one with a `link` opens its evidence. */
export interface Phrase {
  text: string;
  link?: string | null;
}

/** The words alone, where nothing can be clicked: the title of a cell, a tip. */
export const plain = (text: readonly Phrase[]): string => text.map(phrase => phrase.text).join('');

export const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** An option with its value, a call with its arguments, a member of an enumeration, or options of a command. */
const WRITTEN = /^[\w.]+=.+$|^[\w.]+\((?!\.{3}\)$).*\)$|^[A-Z]\w*\.[A-Z]+$|^(\S+ )*--\w/;

/** Of what stands between backticks the code to write, each once: not the names of what is missing. */
export const codeToWrite = (message: string): string[] => [
  ...new Set(
    message
      .split('`')
      .filter((part, i, parts) => parts.length % 2 === 1 && i % 2 === 1 && WRITTEN.test(part)),
  ),
];

/** Cut in the middle: names of one place begin alike, and their ends tell them apart. */
export function shortened(name: string, letters: number): string {
  if (name.length <= letters) {
    return name;
  }
  const end = Math.floor((letters - 1) / 2);
  return `${name.slice(0, letters - 1 - end)}…${end > 0 ? name.slice(-end) : ''}`;
}

/** The same of names that stand together: where it would leave some alike, they are cut up to where they differ. */
export function shortenedApart(names: readonly string[], letters: number): string[] {
  const short = names.map(name => shortened(name, letters));
  return names.map((name, i) => {
    const alike = new Set(names.filter((_, other) => short[other] === short[i]));
    if (alike.size < 2) {
      return short[i]!;
    }
    const differ = commonLength([...alike]);
    const begin = Math.max(name.lastIndexOf(' ', differ - 1) + 1, differ - Math.floor(letters / 4));
    const rest = name.slice(begin, begin + Math.ceil((letters - 1) / 2));
    return `${name.slice(0, letters - 1 - rest.length)}…${rest}`;
  });
}

/** How many letters these begin with alike. */
function commonLength(names: readonly string[]): number {
  const [first = '', ...others] = names;
  let length = 0;
  while (length < first.length && others.every(name => name[length] === first[length])) {
    length++;
  }
  return length;
}
