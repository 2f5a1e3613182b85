import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { renderHook, waitFor } from '@testing-library/react';
import type { ReactNode } from 'react';
import { expect, it } from 'vitest';
import type { Client } from '../api/client';
import { ClientContext, useView } from './queries';

it('gives up the answer to a filter once the next letter is typed', async () => {
  const asked: { filter: string | undefined; signal: AbortSignal | undefined }[] = [];
  const client = {
    view: (_slug: string, _selectors: object, params: Record<string, string>, signal?: AbortSignal) => {
      asked.push({ filter: params.filter, signal });
      return new Promise(() => undefined); // still at work
    },
  } as unknown as Client;
  const queries = new QueryClient();
  const Wrapper = ({ children }: { children: ReactNode }) => (
    <QueryClientProvider client={queries}>
      <ClientContext.Provider value={client}>{children}</ClientContext.Provider>
    </QueryClientProvider>
  );
  const { rerender, unmount } = renderHook(
    ({ filter }: { filter: string }) => useView('operators', { run: 'a' }, { filter }),
    { wrapper: Wrapper, initialProps: { filter: 'm' } },
  );
  await waitFor(() => expect(asked).toHaveLength(1));
  rerender({ filter: 'mm' });
  await waitFor(() => expect(asked).toHaveLength(2));
  expect(asked.map(({ filter, signal }) => [filter, signal!.aborted])).toEqual([
    ['m', true],
    ['mm', false],
  ]);
  unmount();
  expect(asked[1]!.signal!.aborted).toBe(true);
});
