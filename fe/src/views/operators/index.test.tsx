import { fireEvent, screen, within } from '@testing-library/react';
import { expect, it } from 'vitest';
import golden from '../../../../tests/golden/payloads/operators.json';
import { drawView, serveGoldens } from '../../testing/view';
import View from '.';

serveGoldens(golden);

it('shows the operators, and what is known of the one that is chosen', async () => {
  drawView(View, golden.operators);
  const row = within(screen.getByRole('grid')).getByRole('row', { name: /aten::mm/ });
  expect(row.textContent).toContain('1.50 ms');
  expect(document.querySelector('img')).toBeNull(); // a name is a text, whatever it holds
  fireEvent.click(row);
  expect(await screen.findByRole('group', { name: 'Distribution of the durations' })).toBeTruthy();
  expect(screen.getByText('median 100 µs')).toBeTruthy();
});
