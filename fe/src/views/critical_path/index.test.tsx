import { screen, within } from '@testing-library/react';
import { expect, it } from 'vitest';
import golden from '../../../../tests/golden/payloads/critical_path.json';
import { drawView, serveGoldens } from '../../testing/view';
import View from '.';

serveGoldens(golden);

it('says what bounds the step, and what each target would bring', () => {
  drawView(View, golden.critical_path);
  expect(screen.getByRole('heading', { level: 1 }).textContent).toMatch(/^The host bounds/);
  const table = within(screen.getByRole('grid', { name: 'what could be faster' }));
  const row = table.getByRole('row', { name: /Data loading/ });
  expect(row.textContent).toContain('330 µs');
  expect(row.textContent).toContain('165 µs');
  expect(screen.getByText(/assumes that nobody needs the value/)).toBeTruthy();
});
