import { screen } from '@testing-library/react';
import { expect, it } from 'vitest';
import golden from '../../../../tests/golden/payloads/memory.json';
import { draw, drawView, serveGoldens, textOf } from '../../testing/view';
import { Snapshot } from './files/Snapshot';
import { Timeline } from './files/Timeline';
import View from '.';

serveGoldens(golden);

it('shows the peak, who holds it, and that it grows', async () => {
  drawView(View, golden.memory);
  expect(document.querySelector('h1')!.textContent).toBe(textOf(golden.memory.devices[0]!.headline));
  expect(
    (await screen.findByText('aten::kept <img src=x onerror=alert(1)>', { selector: 'ol span' }))
      .parentElement!.textContent,
  ).toContain('4.00 MiB');
  expect(await screen.findByLabelText(/Instant in the memory/)).toBeTruthy();
  expect(document.querySelector('[data-part=memory-warning]')!.textContent).toContain('1.00 MiB');
});

it('lists the blocks', async () => {
  drawView(View, golden.memory);
  expect((await screen.findAllByText('aten::scratch', { selector: '[role=row] *' })).length).toBeGreaterThan(
    5,
  );
  expect(screen.getByText('24 blocks')).toBeTruthy();
});

const shown = (number: number, kind: string) => ({
  selectors: { run: 'run' },
  file: { file: number, name: kind, kind: kind as 'snapshot', bytes: 1000, path: 'run/file' },
  crumb: 'run',
  files: null,
});

it('opens a snapshot of the allocator', async () => {
  draw(<Snapshot {...shown(0, 'snapshot')} />);
  const headline = textOf(golden['memory/snapshot'].headline);
  expect(await screen.findByRole('heading', { level: 1, name: headline })).toBeTruthy();
  expect(document.querySelector('[data-part=allocation-error]')!.textContent).toContain('954 MiB');
  expect(document.querySelectorAll('[data-part=segments] li')).toHaveLength(2);
});

it('opens an exported timeline', async () => {
  draw(<Timeline {...shown(1, 'timeline')} />);
  const headline = textOf(golden['memory/timeline'].headline);
  expect(await screen.findByRole('heading', { level: 1, name: headline })).toBeTruthy();
  expect(document.querySelector('[data-part=kind-list]')!.textContent).toContain('activation');
});
