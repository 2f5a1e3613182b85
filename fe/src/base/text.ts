// Words that the server made.

/** A part of a sentence; one with a `link` opens its evidence. */
export interface Phrase {
  text: string;
  link?: string | null;
}

/** The words alone, where nothing can be clicked: the title of a cell, a tip. */
export const plain = (text: readonly Phrase[]): string => text.map(phrase => phrase.text).join('');
