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
