// How tiles are fetched, and the messages between the page and the worker that does it.
import type { Client } from '../../api/client';
import type { ErrorInfo, Selectors, TraceCounters, TraceTile, ViewAnswer } from '../../api/types';
import type { TileNames } from '../contract';
import { decodeSamples, decodeTile, type Samples, type Tile } from './tile';

export interface TileRequest {
  part: 'tile' | 'blame' | 'counters';
  selectors: Selectors;
  params: Record<string, string>;
}

/** To the worker: a request with its id and the base address of the API, or the id of a request to abort. */
export type WorkerRequest = { id: number; base: string; request: TileRequest } | { id: number; abort: true };

/** From the worker: the data, or the error. */
export type WorkerReply =
  | { id: number; data: Tile | Samples }
  | { id: number; message: string; refused: { status: number; info: ErrorInfo } | null };

/** Fetch and decode a tile or counters, on the page's thread or in the worker. */
export async function fetchTile(
  client: Client,
  { part, selectors, params }: TileRequest,
  signal: AbortSignal,
): Promise<Tile | Samples> {
  const fetchPart = async <T>() =>
    readyPayload(await client.view<T>(`trace/${part}`, selectors, params, signal));
  return part === 'counters'
    ? decodeSamples(await fetchPart<TraceCounters>())
    : decodeTile(await fetchPart<TraceTile>());
}

/** Fetch names that no loaded tile has, by code. */
export async function fetchNames(
  client: Client,
  selectors: Selectors,
  codes: readonly number[],
): Promise<TileNames> {
  const params = { codes: codes.join(',') };
  return readyPayload(await client.view<TileNames>('trace/names', selectors, params));
}

function readyPayload<T>(found: ViewAnswer<T>): T {
  if (found.state !== 'ready') {
    throw new Error('the trace is being loaded again');
  }
  return found.payload;
}
