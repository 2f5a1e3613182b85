import { screen } from '@testing-library/react';
import { expect, it, vi } from 'vitest';
import job from '../../../../../tests/golden/payloads/distributed.json';
import golden from '../../../../../tests/golden/payloads/trace.json';
import { drawnText, drawView, serveGoldens, textOf } from '../../../testing/view';
import View from '..';

serveGoldens({ ...golden, ...job });

const connections = job['distributed/connections'];

it('draws the ranks below each other, with what joins them in words', async () => {
  drawView(View, golden.trace, { params: { ranks: 'rank0,rank1' } });
  expect(await screen.findByText(textOf(connections.details))).toBeTruthy();
  expect(document.querySelector('h1')!.textContent).toBe(textOf(connections.headline));
  const titles = [...document.querySelectorAll('[data-part=track-label]')].map(label => label.textContent);
  for (const { rank } of connections.ranks) {
    expect(titles.some(title => title?.includes(`rank ${rank}`))).toBe(true);
  }
});

it('opens a slice of the rank that was clicked', async () => {
  const second = 2 * 2 + 1; // slice 2 of the second of two ranks
  drawView(View, golden.trace, { params: { ranks: 'rank0,rank1', event: String(second) } });
  expect(await screen.findByRole('heading', { level: 2, name: /aten::mm/ })).toBeTruthy();
});

it('sums up a time range on each rank, side by side', async () => {
  drawView(View, golden.trace, { params: { ranks: 'rank0,rank1', area: '0-3000000' } });
  await screen.findByRole('heading', { name: /^Selected 3\.00 ms/ });
  for (const { rank } of connections.ranks) {
    expect(screen.getByRole('columnheader', { name: new RegExp(`rank ${rank}`) })).toBeTruthy();
  }
  const { rows } = golden['trace/selection'];
  expect(await screen.findByText(`${rows.length} names`, { exact: false })).toBeTruthy();
});

it('says why the device of a rank waits, in the time of the merged timeline, and where it is drawn', async () => {
  const wait = golden['trace/moment'];
  const rank = 0; // the other one is late: what its device waits for is always in sight
  const device = 2 * wait.device + rank;
  const shift = connections.ranks[rank]!.shift_ns!;
  drawView(View, golden.trace, {
    params: { ranks: 'rank0,rank1', moment: `${device}:${Math.floor(wait.begin_ns + shift)}` },
  });
  const panel = await screen.findByLabelText("Selected part of the device's time");
  expect(drawnText(panel)).toContain(textOf(wait.headline));
  const titles = [...document.querySelectorAll('[data-part=track-label]')].map(label => label.textContent);
  expect(titles.filter(title => title?.includes('Why idle')).length).toBe(connections.ranks.length);
});

it('has the tools of one trace', async () => {
  drawView(View, golden.trace, { params: { ranks: 'rank0,rank1', color: 'name', path: 'true' } });
  const path = await screen.findByRole('button', { name: 'Path' });
  expect(path.getAttribute('aria-pressed')).toBe('true');
  expect(screen.getByRole('combobox', { name: 'Color by' }).dataset.value).toBe('name');
  expect(screen.getByText(/each name keeps its color/)).toBeTruthy();
  expect(screen.queryByRole('button', { name: 'Python' }) !== null).toBe(
    golden.trace.counts.python_slices > 0,
  );
});

it('reports ranks without slices instead of loading forever', async () => {
  const answered = fetch;
  const message = 'no trace is recorded: use `torch.profiler`';
  vi.stubGlobal('fetch', (address: URL | string) =>
    new URL(address).pathname.endsWith('/view/trace')
      ? Promise.resolve(
          new Response(JSON.stringify({ error: { code: 'not_found', message } }), { status: 404 }),
        )
      : answered(address),
  );
  drawView(View, golden.trace, { params: { ranks: 'rank0,rank1' } });
  expect(document.querySelector('[aria-busy=true]')?.textContent).toContain('Loading the ranks.');
  await screen.findByText('These ranks can’t be shown on one timeline.');
  expect(document.querySelector('[aria-busy=true]')).toBeNull();
  expect(document.querySelector('[data-part=why]')!.textContent).toBe(
    'no trace is recorded: use torch.profiler',
  );
});
