import { fireEvent, screen, waitFor } from '@testing-library/react';
import { expect, it, vi } from 'vitest';
import golden from '../../../../tests/golden/payloads/memory.json';
import { joinUnits } from '../../base/text';
import { draw, drawnText, drawView, serveGoldens, textOf } from '../../testing/view';
import { Snapshot } from './files/Snapshot';
import { ExportedTimeline } from './files/ExportedTimeline';
import View from '.';

serveGoldens(golden);

it('shows the peak, who holds it, and that it grows', async () => {
  drawView(View, golden.memory);
  expect(drawnText(document.querySelector('h1'))).toBe(textOf(golden.memory.devices[0]!.headline));
  expect(
    (await screen.findByText('aten::kept <img src=x onerror=alert(1)>', { selector: 'ol span' }))
      .parentElement!.textContent,
  ).toContain('4.00 MiB');
  expect(await screen.findByLabelText(/Instant in the memory/)).toBeTruthy();
  expect(drawnText(document.querySelector('[data-part=memory-warning]'))).toContain('1.00 MiB');
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
  expect(await screen.findByRole('heading', { level: 1, name: joinUnits(headline) })).toBeTruthy();
  expect(document.querySelector('[data-part=allocation-error]')!.textContent).toContain('954 MiB');
  await waitFor(() => expect(document.querySelectorAll('[data-part=segments] li')).toHaveLength(2));
  expect(document.querySelectorAll('[data-part=segments] rect').length).toBeGreaterThan(2);
});

it('shows what is in use at the instant that is chosen in the history', async () => {
  const served = fetch;
  const requested: URL[] = [];
  vi.stubGlobal('fetch', (address: string) => {
    requested.push(new URL(address));
    return served(address);
  });
  draw(<Snapshot {...shown(0, 'snapshot')} />);
  const history = await screen.findByRole('slider');
  expect(document.querySelectorAll('[data-part=oom-mark]')).toHaveLength(1);
  const entries = () =>
    requested.flatMap(url => (url.pathname.endsWith('instant') ? [url.searchParams.get('entry')] : []));
  await waitFor(() => expect(entries()).toEqual([String(golden['memory/snapshot'].peak_entry)]));
  fireEvent.keyDown(history, { key: 'ArrowLeft' });
  await waitFor(() => expect(entries()).toHaveLength(2));
  fireEvent.click(screen.getByRole('button', { name: 'End' }));
  await waitFor(() => expect(entries().at(-1)).toBeNull());
  fireEvent.click(screen.getByText('Category'));
  await waitFor(() =>
    expect(document.querySelector('[data-part=live-rows]')!.textContent).toContain('unknown'),
  );
});

it('opens the own snapshot of the recording that is shown', async () => {
  const served = fetch;
  const file = (number: number, name: string) => ({
    file: number,
    name,
    kind: 'snapshot',
    bytes: 1,
    path: name,
  });
  const spans = (name: string) => [{ name: '1', label: '1', file: name, bytes: 1 }];
  const body = {
    run: 'run',
    workers: ['v', 'w'].map(name => ({ name, rank: null, spans: spans(name) })),
    memory_files: [file(0, 'v'), file(1, 'w')],
  };
  const requested: URL[] = [];
  vi.stubGlobal('fetch', (address: string) => {
    const url = new URL(address);
    requested.push(url);
    return url.pathname === '/workers'
      ? Promise.resolve(new Response(JSON.stringify(body)))
      : served(address);
  });
  drawView(View, { ...golden.memory, devices: [] });
  await waitFor(() => expect(requested.some(url => url.pathname === '/view/memory/snapshot')).toBe(true));
  const first = requested.find(url => url.pathname === '/view/memory/snapshot')!;
  expect(first.searchParams.get('file')).toBe('1');
});

it('opens an exported timeline', async () => {
  draw(<ExportedTimeline {...shown(1, 'timeline')} />);
  const headline = textOf(golden['memory/timeline'].headline);
  expect(await screen.findByRole('heading', { level: 1, name: joinUnits(headline) })).toBeTruthy();
  expect(document.querySelector('[data-part=kind-list]')!.textContent).toContain('activation');
});
