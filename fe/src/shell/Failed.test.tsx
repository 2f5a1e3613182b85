import { fireEvent, screen } from '@testing-library/react';
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
