import { fireEvent, screen, within } from '@testing-library/react';
import { expect, it } from 'vitest';
import golden from '../../../../tests/golden/payloads/overlap.json';
import { drawView, serveGoldens } from '../../testing/view';
import View from '.';

serveGoldens({
  ...golden,
});

it('answers first, and names the rank with the most exposed communication', () => {
  drawView(View, golden.overlap);
  expect(screen.getByRole('heading', { level: 1 }).textContent).toMatch(
    /^Exposed communication takes .* of an average iteration/,
  );
  expect(screen.getByText(/overlap_ratio/)).toBeTruthy();
});

it('says how many ranks are still to be read, and nothing once all are', () => {
  const { overlap } = golden;
  const [first, ...others] = overlap.ranks;
  const waits = others.map(each => ({ ...each, state: 'loading' as const }));
  const reading = [{ text: 'some are still being read', link: null }];
  const { unmount } = drawView(View, { ...overlap, ranks: [first!, ...waits], reading });
  const status = screen.getByRole('status');
  expect(status.textContent).toContain('some are still being read');
  expect((within(status).getByRole('progressbar') as HTMLProgressElement).value).toBe(1);
  unmount();
  drawView(View, overlap);
  expect(screen.queryByRole('progressbar')).toBeNull();
});

it('opens the iteration of a cell on the timeline', async () => {
  drawView(View, golden.overlap);
  const map = screen.getByRole('figure', { name: 'Exposed communication by rank and iteration' });
  const [cell] = await within(map).findAllByRole('button');
  fireEvent.click(cell!);
  expect(location.hash).toContain('view=trace');
  expect(location.hash).toContain('worker=rank0');
});

it('shows what was recorded beside what the ranges give, with the reason of a difference', () => {
  drawView(View, golden.overlap);
  const table = screen.getByRole('table', { name: 'Recorded and recomputed totals' });
  const row = within(table).getByText('Stream compute').closest('tr')!;
  expect(row.textContent).toContain('the recorder ends both with the first');
  expect(within(table).getByText('Stream aux').closest('tr')!.textContent).not.toContain('recorder');
});
