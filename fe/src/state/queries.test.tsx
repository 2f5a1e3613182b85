import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { renderHook, waitFor } from '@testing-library/react';
import type { ReactNode } from 'react';
import { expect, it } from 'vitest';
import type { Client } from '../api/client';
import { usePages } from './pages';
import { ClientContext, useView } from './queries';

/** Return what provides hooks with a client that answers them. */
function asking(client: Client) {
  const queries = new QueryClient();
  return ({ children }: { children: ReactNode }) => (
    <QueryClientProvider client={queries}>
      <ClientContext.Provider value={client}>{children}</ClientContext.Provider>
    </QueryClientProvider>
  );
}

it('gives up the answer to a filter once the next letter is typed', async () => {
  const requests: { filter: string | undefined; signal: AbortSignal | undefined }[] = [];
  const client = {
    view: (_slug: string, _selectors: object, params: Record<string, string>, signal?: AbortSignal) => {
      requests.push({ filter: params.filter, signal });
      return new Promise(() => undefined); // still at work
    },
  } as unknown as Client;
  const { rerender, unmount } = renderHook(
    ({ filter }: { filter: string }) => useView('operators', { run: 'a' }, { filter }),
    { wrapper: asking(client), initialProps: { filter: 'm' } },
  );
  await waitFor(() => expect(requests).toHaveLength(1));
  rerender({ filter: 'mm' });
  await waitFor(() => expect(requests).toHaveLength(2));
  expect(requests.map(({ filter, signal }) => [filter, signal!.aborted])).toEqual([
    ['m', true],
    ['mm', false],
  ]);
  unmount();
  expect(requests[1]!.signal!.aborted).toBe(true);
});

it('gives up the rows of a search once the next letter is typed', async () => {
  const requests: { search: string | undefined; signal: AbortSignal | undefined }[] = [];
  const client = {
    view: (_slug: string, _selectors: object, params: Record<string, string>, signal?: AbortSignal) => {
      requests.push({ search: params.search, signal });
      return new Promise(() => undefined); // still at work
    },
  } as unknown as Client;
  const { rerender } = renderHook(
    ({ params }: { params: Record<string, string> }) => usePages('memory/events', { run: 'a' }, params, 50),
    { wrapper: asking(client), initialProps: { params: { search: 'm' } } },
  );
  await waitFor(() => expect(requests).toHaveLength(1));
  rerender({ params: { search: 'mm' } });
  await waitFor(() => expect(requests).toHaveLength(2));
  expect(requests.map(({ search, signal }) => [search, signal?.aborted])).toEqual([
    ['m', true],
    ['mm', false],
  ]);
});

it('asks for the rows of a job again until all of its files are read', async () => {
  let requests = 0;
  const client = {
    view: async () => {
      requests += 1;
      return { state: 'ready', loading: 2 - requests, payload: { total: 100 * requests } };
    },
  } as unknown as Client;
  const params = {};
  const { result } = renderHook(
    () => usePages<{ total: number }>('distributed/families', { run: 'a' }, params, 50),
    { wrapper: asking(client) },
  );
  await waitFor(() => expect(result.current.first?.total).toBe(100));
  await waitFor(() => expect(result.current.first?.total).toBe(200), { timeout: 20_000 });
  expect(requests).toBe(2);
});
