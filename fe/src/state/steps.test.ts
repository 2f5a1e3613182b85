import { expect, test } from 'vitest';
import { sayStep } from './steps';

test('a sentence about steps is one about iterations in the trace of an engine', () => {
  expect(sayStep('A step takes 3 ms, steps 1 to 4. Step by step', 'iteration')).toBe(
    'An iteration takes 3 ms, iterations 1 to 4. Iteration by iteration',
  );
  expect(sayStep('one prof.step() to the next', 'iteration')).toBe('one prof.step() to the next');
  expect(sayStep('Average step per rank', 'step')).toBe('Average step per rank');
});
