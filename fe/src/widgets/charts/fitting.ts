// Names in lines of the size of a legend, cut only where they do not fit.
import { shortenDistinct } from '../../base/text';

/** Pixels that a text takes. */
export type Measure = (text: string) => number;

/** With fewer letters both ends say less than the beginning alone; a letter takes so many pixels at least. */
const LEAST = 8;
const LETTER = 3;

/** As the browser draws it in a legend; 0 where nothing can be drawn. */
export function legendMeasure(): Measure {
  const context = document.createElement('canvas').getContext('2d');
  if (!context) {
    return () => 0;
  }
  const font = getComputedStyle(document.documentElement).getPropertyValue('--font').trim();
  context.font = `11px ${font || 'sans-serif'}`;
  return text => context.measureText(text).width;
}

/** Of names in lines with so many pixels for each, what fits: a name that does is whole, and so is one for both of
 * whose ends there is no room, which the style sheet cuts. */
export function fitting(names: readonly string[], room: number, measure: Measure): string[] {
  const long = names.map(name => measure(name) > room);
  for (let letters = Math.floor(room / LETTER); letters >= LEAST; letters--) {
    const short = shortenDistinct(names, letters);
    if (short.every((text, i) => !long[i] || measure(text) <= room)) {
      return names.map((name, i) => (long[i] ? short[i]! : name));
    }
  }
  return [...names];
}
