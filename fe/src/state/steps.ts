// What a step of the trace that is looked at is called.
import { createContext, useCallback, useContext } from 'react';

/** "step", or "iteration" in the trace of an inference engine. */
export const StepNounContext = createContext('step');

export type Say = (text: string) => string;

/** Return a function that says a sentence about steps in the words of the trace. */
export function useStepWords(): Say {
  const noun = useContext(StepNounContext);
  return useCallback(text => sayStep(text, noun), [noun]);
}

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
