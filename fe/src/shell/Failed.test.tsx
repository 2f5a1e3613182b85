import { fireEvent, screen, waitFor } from '@testing-library/react';
import { beforeEach, expect, it, vi } from 'vitest';
import { ApiError } from '../api/client';
import { draw, serveGoldens } from '../testing/view';
import { Failed } from './Failed';

serveGoldens({});

const RUNS = [
  { name: 'now', workers: 1, bytes: 10 },
  { name: 'before', workers: 8, bytes: 2048 },
  { name: 'dumps only', workers: 0, bytes: 5 },
];

beforeEach(() => {
  const answers = globalThis.fetch;
  vi.stubGlobal('fetch', (address: URL | string) =>
    new URL(address).pathname.endsWith('/runs')
      ? Promise.resolve(
          new Response(JSON.stringify({ runs: RUNS, problems: [], listed: true, others: null })),
        )
      : answers(address),
  );
});

it('lists the runs that a comparison can take as its base, and takes the one that is chosen', async () => {
  const error = new ApiError(400, {
    code: 'undecided',
    message: 'no other run has similar operators: choose the run to compare with',
    where: null,
    hint: 'pass base_run',
    stage: null,
  });
  draw(<Failed error={error} run="now" />);
  const before = await screen.findByRole('button', { name: 'before' });
  expect(before.closest('tr')?.textContent).toBe('before82.00 KiB');
  expect(screen.queryByRole('button', { name: 'now' })).toBeNull();
  expect(screen.queryByRole('button', { name: 'dumps only' })).toBeNull();
  fireEvent.click(before);
  expect(location.hash).toContain('base_run=before');
});

const failure = (code: string, message: string, hint: string) =>
  new ApiError(404, { code, message, hint, where: null, stage: null });

it('draws code in messages as code, and begins what to do with a capital', () => {
  const { unmount } = draw(<Failed error={failure('trace', 'there is no `traceEvents`', 'x')} run="now" />);
  expect(screen.getByRole('heading', { level: 1 }).textContent).toBe(
    "This file can't be read: there is no traceEvents.",
  );
  expect(screen.queryByText(/`/)).toBeNull();
  unmount();
  draw(<Failed error={failure('not_found', 'there are no dumps', 'put them here')} run="now" />);
  expect(screen.getByText('Put them here')).toBeTruthy();
});

it('leads to the first run from any other, not from itself', async () => {
  const error = failure('not_found', 'there are no dumps', 'put them here');
  const { unmount } = draw(<Failed error={error} run="before" />);
  expect(await screen.findByRole('button', { name: 'Go to the first run' })).toBeTruthy();
  unmount();
  draw(<Failed error={error} run="now" />);
  await waitFor(() => expect(screen.queryByRole('button', { name: 'Go to the first run' })).toBeNull());
});
