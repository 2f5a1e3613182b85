import { render, screen } from '@testing-library/react';
import { expect, it } from 'vitest';
import { StepNounContext } from '../../state/steps';
import { StepFilter } from './filters';

it.each([
  ['step', 'Step'],
  ['iteration', 'Iteration'],
])('the filter of a trace of a %s is labeled %s', (noun, label) => {
  render(
    <StepNounContext value={noun}>
      <StepFilter steps={['1', '2']} value={undefined} onChange={() => {}} />
    </StepNounContext>,
  );
  expect(screen.getByRole('combobox', { name: label })).toBeTruthy();
});
