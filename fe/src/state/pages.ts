import { useQueries } from '@tanstack/react-query';
import { useCallback, useState } from 'react';
import type { Selectors } from '../api/types';
import { PARTIAL_MS, useClient } from './queries';

/**
 * Pages of a view's rows, each fetched once it is visible, and again while files of the job are still being read.
 * `params` must be the same object while it is unchanged.
 */
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
  const fetchPage = useCallback(
    async (first: number, limit?: number, signal?: AbortSignal) => {
      const page = { first: String(first), ...(limit === undefined ? {} : { limit: String(limit) }) };
      const answer = await client.view<P>(slug, selectors, { ...params, ...page }, signal);
      if (answer.state !== 'ready') {
        throw new Error('the trace is being loaded again');
      }
      return answer;
    },
    [client, slug, selectors, params],
  );
  const answers = useQueries({
    queries: pages.map(page => ({
      queryKey: ['pages', slug, selectors, params, page],
      // A search that is typed on gives up the rows of the one before.
      queryFn: ({ signal }: { signal: AbortSignal }) => fetchPage(page * size, size, signal),
      refetchInterval: ({ state }: { state: { data?: { loading: number } } }) =>
        state.data?.loading ? PARTIAL_MS : false,
      staleTime: 30_000,
    })),
  });
  const byPage = new Map(pages.map((page, i) => [page, answers[i]?.data?.payload]));
  return {
    /** It also has what concerns all rows. */
    first: answers[0]?.data?.payload,
    page: (index: number): P | undefined => byPage.get(index),
    setPages: useCallback(
      (next: number[]) => setPages(now => (String(now) === String(next) ? now : next)),
      [],
    ),
    fetchRows: async (first: number, limit?: number): Promise<P> => (await fetchPage(first, limit)).payload,
    error: answers.find(answer => answer.error)?.error ?? null,
  };
}
