import { screen } from '@testing-library/react';
import { expect, it } from 'vitest';
import golden from '../../../../tests/golden/payloads/memory.json';
import { drawView, serveGoldens, textOf } from '../../testing/view';
import View from '.';

serveGoldens(golden);

it('shows the peak, who holds it, and that it grows', async () => {
  drawView(View, golden.memory);
  expect(document.querySelector('h1')!.textContent).toBe(textOf(golden.memory.devices[0]!.headline));
  expect(
    (await screen.findByText('aten::kept <img src=x onerror=alert(1)>', { selector: 'ol span' }))
      .parentElement!.textContent,
  ).toContain('3.00 MiB');
  expect(await screen.findByLabelText(/Instant in the memory/)).toBeTruthy();
  expect(document.querySelector('[data-part=memory-warning]')!.textContent).toContain('1.00 MiB');
});

it('lists the blocks', async () => {
  drawView(View, golden.memory);
  expect((await screen.findAllByText('aten::scratch', { selector: '[role=row] *' })).length).toBeGreaterThan(
    5,
  );
  expect(screen.getByText('18 blocks')).toBeTruthy();
});
