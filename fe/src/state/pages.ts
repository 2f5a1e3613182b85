import { useQueries } from '@tanstack/react-query';
import { useCallback, useState } from 'react';
import type { Selectors } from '../api/types';
import { useClient } from './queries';

/** Pages of a view's rows, each fetched once it is visible. `params` must be the same object while it is unchanged. */
export function usePages<P>(
  slug: string,
  selectors: Selectors,
  params: Record<string, string>,
  size: number,
) {
  const client = useClient();
  const [visiblePages, setPages] = useState<number[]>([]);
  // The first page is always fetched: it has the number of rows.
  const pages = [0, ...visiblePages.filter(page => page > 0)];
  const fetchRows = useCallback(
    async (first: number, limit?: number): Promise<P> => {
      const page = { first: String(first), ...(limit === undefined ? {} : { limit: String(limit) }) };
      const answer = await client.view<P>(slug, selectors, { ...params, ...page });
      if (answer.state !== 'ready') {
        throw new Error('the trace is being loaded again');
      }
      return answer.payload;
    },
    [client, slug, selectors, params],
  );
  const answers = useQueries({
    queries: pages.map(page => ({
      queryKey: ['pages', slug, selectors, params, page],
      queryFn: () => fetchRows(page * size, size),
      staleTime: 30_000,
    })),
  });
  const byPage = new Map(pages.map((page, i) => [page, answers[i]?.data]));
  return {
    /** It also has what concerns all rows. */
    first: answers[0]?.data,
    page: (index: number): P | undefined => byPage.get(index),
    setPages: useCallback(
      (next: number[]) => setPages(now => (String(now) === String(next) ? now : next)),
      [],
    ),
    fetchRows,
    error: answers.find(answer => answer.error)?.error ?? null,
  };
}
