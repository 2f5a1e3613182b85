// What a step is called: "step", or "iteration" in the trace of an inference engine.

const STEP = /\b([Aa] )?(s|S)tep(s?)\b(?!\()/g;

/** Return a sentence of the page with `noun` for a step; names of a trace are never passed. */
export function sayStep(text: string, noun: string): string {
  if (noun === 'step') {
    return text;
  }
  const article = /^[aeiou]/.test(noun) ? 'n' : '';
  return text.replaceAll(STEP, (_, a: string | undefined, first: string, plural: string) => {
    const word = first === 'S' ? noun.charAt(0).toUpperCase() + noun.slice(1) : noun;
    return `${a ? `${a.trim()}${article} ` : ''}${word}${plural}`;
  });
}
