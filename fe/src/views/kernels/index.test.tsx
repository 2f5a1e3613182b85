import { fireEvent, screen, within } from '@testing-library/react';
import { expect, it } from 'vitest';
import golden from '../../../../tests/golden/payloads/kernels.json';
import { drawView, serveGoldens } from '../../testing/view';
import View from '.';

serveGoldens(golden);

it('shows the kernels, and what is known of the one that is chosen', async () => {
  drawView(View, golden.kernels);
  const row = within(screen.getByRole('grid', { name: 'kernels' })).getByRole('row', {
    name: /GEMM bf16 128x128/,
  });
  expect(row.textContent).toContain('500 µs');
  fireEvent.click(row);
  expect(await screen.findByText('median 500 µs')).toBeTruthy();
  expect(screen.getByText(/sum: 1\.50 ms in 3 launches/)).toBeTruthy();
});
