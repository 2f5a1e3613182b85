import { useQueries } from '@tanstack/react-query';
import { useCallback, useState } from 'react';
import type { Selectors } from '../api/types';
import { useClient } from './queries';

/** Pages of a view's rows, each fetched once it is in sight. `params` must be the same object while it says the same. */
export function usePages<P>(
  slug: string,
  selectors: Selectors,
  params: Record<string, string>,
  size: number,
) {
  const client = useClient();
  const [inSight, setPages] = useState<number[]>([]);
  // The first page stays: it says how many rows there are, while the others come and go.
  const pages = [0, ...inSight.filter(page => page > 0)];
  const ask = useCallback(
    async (first: number, limit?: number): Promise<P> => {
      const page = { first: String(first), ...(limit === undefined ? {} : { limit: String(limit) }) };
      const answer = await client.view<P>(slug, selectors, { ...params, ...page });
      if (answer.state !== 'ready') {
        throw new Error('the trace is being read again');
      }
      return answer.payload;
    },
    [client, slug, selectors, params],
  );
  const answers = useQueries({
    queries: pages.map(page => ({
      queryKey: ['pages', slug, selectors, params, page],
      queryFn: () => ask(page * size, size),
      staleTime: 30_000,
    })),
  });
  const byPage = new Map(pages.map((page, i) => [page, answers[i]?.data]));
  return {
    /** Also says what concerns all rows. */
    first: answers[0]?.data,
    page: (index: number): P | undefined => byPage.get(index),
    setPages: useCallback(
      (next: number[]) => setPages(now => (String(now) === String(next) ? now : next)),
      [],
    ),
    ask,
    error: answers.find(answer => answer.error)?.error ?? null,
  };
}
