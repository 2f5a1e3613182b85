import {
  keepPreviousData,
  queryOptions,
  useMutation,
  useQueries,
  useQuery,
  useQueryClient,
  type UseQueryResult,
} from '@tanstack/react-query';
import { createContext, useContext } from 'react';
import { ApiError, type Client } from '../api/client';
import type { Selectors, ViewAnswer } from '../api/types';

export const ClientContext = createContext<Client | null>(null);

export function useClient(): Client {
  const client = useContext(ClientContext);
  if (!client) {
    throw new Error('queries need a ClientContext');
  }
  return client;
}

/** Time between two requests for the runs, as long as a server waits between two listings, ms. */
const RUNS_MS = 5000;
/** The same while a file is read, short enough for its progress to look alive, ms. */
const LOADING_MS = 400;
/** The same while some ranks of a job are still read, ms: each answer is built anew. */
export const PARTIAL_MS = 1500;

const retryUnreachable = (count: number, error: Error) =>
  error instanceof ApiError && error.info.code === 'unreachable' && count < 2;

export function useRuns() {
  const client = useClient();
  return useQuery({
    queryKey: ['runs'],
    queryFn: () => client.runs(),
    refetchInterval: query => (query.state.data?.scanning ? LOADING_MS : RUNS_MS),
    retry: false,
  });
}

export function useWorkers(run: string | undefined) {
  const client = useClient();
  return useQuery({
    queryKey: ['workers', run],
    queryFn: () => client.workers(run!),
    enabled: run !== undefined,
    refetchInterval: RUNS_MS,
    retry: retryUnreachable,
  });
}

export function useHealth(run: string | undefined, enabled: boolean) {
  const client = useClient();
  return useQuery({
    queryKey: ['health', run],
    queryFn: () => client.health(run!),
    enabled: enabled && run !== undefined,
    refetchInterval: enabled ? RUNS_MS : false,
    placeholderData: keepPreviousData,
  });
}

export function useViews(selectors: Selectors) {
  const client = useClient();
  return useQuery({
    queryKey: ['views', selectors],
    queryFn: () => client.views(selectors),
    placeholderData: keepPreviousData,
    retry: false,
  });
}

/** The query for a view's payload, repeated while its file is loading until it is ready or has failed. */
const viewQuery = <P>(client: Client, slug: string, selectors: Selectors, params: Record<string, string>) =>
  queryOptions({
    queryKey: ['view', slug, selectors, params],
    // A filter that is typed on, or a tab that is left, stops waiting for the answer before.
    queryFn: ({ signal }) => client.view<P>(slug, selectors, params, signal),
    // While the same view of the same trace is requested with other parameters, the drawing stays.
    placeholderData: (last, query) =>
      JSON.stringify(query?.queryKey.slice(1, 3)) === JSON.stringify([slug, selectors]) ? last : undefined,
    refetchInterval: query => {
      const error = query.state.error;
      if (error) {
        return error instanceof ApiError && error.info.code === 'unreachable' ? RUNS_MS : false;
      }
      const data = query.state.data;
      return data?.state !== 'ready' ? LOADING_MS : data.loading > 0 ? PARTIAL_MS : false;
    },
    staleTime: query => (query.state.data?.state === 'ready' && !query.state.data.loading ? 30_000 : 0),
    retry: false,
  });

export function useView<P>(
  slug: string,
  selectors: Selectors,
  params: Record<string, string>,
  enabled = true,
) {
  const client = useClient();
  return useQuery({ ...viewQuery<P>(client, slug, selectors, params), enabled });
}

/** Return a view of several traces; `payloads` is set when all of them are ready. */
export function useViewOfEach<P>(
  slug: string,
  requests: readonly (readonly [Selectors, Record<string, string>])[],
  enabled = true,
): CombinedAnswers<P> {
  const client = useClient();
  return useQueries({
    queries: requests.map(([selectors, params]) => ({
      ...viewQuery<P>(client, slug, selectors, params),
      enabled,
    })),
    combine: combineAnswers<P>,
  });
}

interface CombinedAnswers<P> {
  payloads: P[] | undefined;
  /** Whether they are the answers to the previous parameters. */
  placeholder: boolean;
  error: Error | null;
}

function combineAnswers<P>(answers: readonly UseQueryResult<ViewAnswer<P>>[]): CombinedAnswers<P> {
  const payloads = answers.flatMap(({ data }) => (data?.state === 'ready' ? [data.payload] : []));
  return {
    payloads: payloads.length === answers.length ? payloads : undefined,
    placeholder: answers.some(answer => answer.isPlaceholderData),
    error: answers.find(answer => answer.error)?.error ?? null,
  };
}

/** Return a function that prefetches the first answer of a view that is about to be opened. */
export function usePrefetch(selectors: Selectors) {
  const client = useClient();
  const queries = useQueryClient();
  return (slug: string) => {
    void queries.prefetchQuery({
      queryKey: ['view', slug, selectors, {}],
      queryFn: () => client.view(slug, selectors, {}),
      staleTime: 30_000,
    });
  };
}

export function useRetry() {
  const client = useClient();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (selectors: Selectors) => client.retry(selectors),
    onSettled: () => queries.invalidateQueries(),
  });
}
