import { MantineProvider } from '@mantine/core';
import { render, screen } from '@testing-library/react';
import { expect, it } from 'vitest';
import { StepNounContext } from '../../state/steps';
import { StepFilter } from './filters';

it.each([
  ['step', 'Step'],
  ['iteration', 'Iteration'],
])('steps called %s are filtered by %s', (noun, label) => {
  render(
    <MantineProvider>
      <StepNounContext value={noun}>
        <StepFilter steps={['1', '2']} value={undefined} onChange={() => {}} />
      </StepNounContext>
    </MantineProvider>,
  );
  expect(screen.getByRole('combobox', { name: label })).toBeTruthy();
});
