import { fireEvent, screen } from '@testing-library/react';
import { expect, it } from 'vitest';
import golden from '../../../../tests/golden/payloads/distributed.json';
import { drawView, serveGoldens } from '../../testing/view';
import View from '.';

serveGoldens(golden);

it('names the rank that the others wait for, and what it did', () => {
  drawView(View, golden.distributed);
  expect(screen.getByRole('heading', { level: 1 }).textContent).toContain('Rank 1 keeps the others waiting');
  const straggler = document.querySelector('[data-part=straggler-row][aria-current]')!;
  expect(straggler.textContent).toContain('rank 1100%5.00 ms');
  expect(document.querySelector('[data-part=while-row]')!.textContent).toContain('prepare_batch');
  expect(document.querySelectorAll('[data-part=rank-bar]')).toHaveLength(3);
});

it('lists all collectives page by page', async () => {
  drawView(View, golden.distributed);
  fireEvent.click(screen.getByText('All collectives'));
  expect(
    (await screen.findAllByText('nccl:all_reduce', { selector: '[role=row] button' })).length,
  ).toBeGreaterThan(1);
});
