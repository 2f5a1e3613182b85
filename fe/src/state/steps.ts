// What a step of the trace that is looked at is called.
import { createContext, useCallback, useContext } from 'react';
import { sayStep } from '../base/steps';

/** "step", or "iteration" in the trace of an inference engine. */
export const StepNounContext = createContext('step');

export type Say = (text: string) => string;

/** Return a function that says a sentence about steps in the words of the trace. */
export function useStepWords(): Say {
  const noun = useContext(StepNounContext);
  return useCallback(text => sayStep(text, noun), [noun]);
}
