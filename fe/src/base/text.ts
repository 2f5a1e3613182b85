// Sentences from the server, and names that are cut to fit.

/** A part of a sentence; one with a `link` opens the evidence for it. */
export interface Phrase {
  text: string;
  link?: string | null;
}

/** Return a sentence without its links, for places where nothing can be clicked: tooltips, titles of cells. */
export const plainText = (phrases: readonly Phrase[]): string => phrases.map(phrase => phrase.text).join('');

/** Return the phrases up to the first full stop; one inside a linked name ends no sentence. */
export function firstSentence(phrases: readonly Phrase[]): Phrase[] {
  const i = phrases.findIndex(phrase => !phrase.link && phrase.text.includes('. '));
  return i < 0
    ? [...phrases]
    : [...phrases.slice(0, i), { text: phrases[i]!.text.split('. ', 1)[0]! + '.', link: null }];
}

const BEFORE_UNIT =
  /(\d) (?=(?:[nµm]?s|min|h|[KMGT]i?B|B|[MG]Hz|°C|[GT]?FLOPs?(?:\/s)?|[KMGT]B\/s)(?![\w/]))/g;

/** Return a text in which no line breaks between a number and its unit. */
export const joinUnits = (text: string): string => text.replace(BEFORE_UNIT, '$1\u00a0');

export const capitalize = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** An option with its value, a call with its arguments, a member of an enumeration, or options of a command. */
const CODE_TO_WRITE = /^[\w.]+=.+$|^[\w.]+\((?!\.{3}\)$).*\)$|^[A-Z]\w*\.[A-Z]+$|^(\S+ )*--\w/;

/** Return the code in backticks that a user can write, each once; names of things that are missing don't count. */
export const codeToWrite = (message: string): string[] => [
  ...new Set(
    message
      .split('`')
      .filter((part, i, parts) => parts.length % 2 === 1 && i % 2 === 1 && CODE_TO_WRITE.test(part)),
  ),
];

/** Cut a name in the middle: names from one place start alike, and their ends tell them apart. */
export function shorten(name: string, length: number): string {
  if (name.length <= length) {
    return name;
  }
  const end = Math.floor((length - 1) / 2);
  return `${name.slice(0, length - 1 - end)}…${end > 0 ? name.slice(-end) : ''}`;
}

/** Shorten names shown together; those that would look the same keep the part where they differ. */
export function shortenDistinct(names: readonly string[], length: number): string[] {
  return names.map(name => {
    let cut = (each: string) => shorten(each, length);
    let collisions = [...new Set(names)].filter(each => cut(each) === cut(name));
    for (let before = Infinity; collisions.length > 1 && collisions.length < before;) {
      before = collisions.length;
      const difference = commonPrefixLength(collisions);
      cut = each => keepDifference(each, difference, length);
      collisions = collisions.filter(each => cut(each) === cut(name));
    }
    return cut(name);
  });
}

/** Cut a name so that it goes on at `difference`, or where the word begins, after its first letters. */
function keepDifference(name: string, difference: number, length: number): string {
  const begin = Math.max(name.lastIndexOf(' ', difference - 1) + 1, difference - Math.floor(length / 4));
  const end = name.slice(begin, begin + Math.ceil((length - 1) / 2));
  return `${name.slice(0, length - 1 - end.length)}…${end}`;
}

function commonPrefixLength(names: readonly string[]): number {
  const [first = '', ...others] = names;
  let length = 0;
  while (length < first.length && others.every(name => name[length] === first[length])) {
    length++;
  }
  return length;
}
