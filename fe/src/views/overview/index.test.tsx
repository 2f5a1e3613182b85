import { fireEvent, screen } from '@testing-library/react';
import { expect, it } from 'vitest';
import golden from '../../../../tests/golden/payloads/overview.json';
import { drawView, serveGoldens, textOf } from '../../testing/view';
import View from '.';

serveGoldens(golden);

it('says what the device waits for, and for how long', () => {
  drawView(View, golden.overview);
  expect(document.querySelector('h1')!.textContent).toBe(textOf(golden.overview.headline));
  expect(screen.getByText('DataLoader', { selector: 'th' }).closest('tr')!.textContent).toContain(
    '330 µs33%',
  );
  expect(screen.getByText('up to 33%, 330 µs')).toBeTruthy();
});

it('shows one step alone, and the average again', async () => {
  drawView(View, golden.overview);
  fireEvent.click(await screen.findByLabelText(/^Step 1, 1\.00 ms/));
  expect(screen.getByText('Step 1, 1.00 ms')).toBeTruthy();
  fireEvent.click(screen.getByText('Show the average'));
  expect(screen.getByText('An average step, 1.00 ms')).toBeTruthy();
});
