// Fetches and decodes tiles and counters in a worker, so that the page's thread is free to draw.
import { ApiError, type Client } from '../../api/client';
import type { Selectors } from '../../api/types';
import { fetchTile, type WorkerRequest, type TileRequest, type WorkerReply } from './fetch';
import { startWorker } from './startWorker';
import type { Samples, Tile } from './tile';

interface PendingRequest {
  request: TileRequest;
  signal: AbortSignal;
  client: Client;
  resolve: (data: Tile | Samples) => void;
  reject: (error: unknown) => void;
}

export class TileReader {
  private readonly pending = new Map<number, PendingRequest>();
  private lastId = 0;

  /** Without a worker, or if it can't start (some hosts sandbox the page), the page's thread does the work. */
  constructor(private worker: Worker | null) {
    worker?.addEventListener('message', ({ data }: MessageEvent<WorkerReply>) => this.settle(data));
    worker?.addEventListener('error', () => {
      this.worker = null;
      for (const { client, request, signal, resolve, reject } of this.pending.values()) {
        fetchTile(client, request, signal).then(resolve, reject);
      }
      this.pending.clear();
    });
  }

  tile(
    client: Client,
    selectors: Selectors,
    params: Record<string, string>,
    signal: AbortSignal,
  ): Promise<Tile> {
    return this.request(client, { part: 'tile', selectors, params }, signal) as Promise<Tile>;
  }

  blame(
    client: Client,
    selectors: Selectors,
    params: Record<string, string>,
    signal: AbortSignal,
  ): Promise<Tile> {
    return this.request(client, { part: 'blame', selectors, params }, signal) as Promise<Tile>;
  }

  counters(
    client: Client,
    selectors: Selectors,
    params: Record<string, string>,
    signal: AbortSignal,
  ): Promise<Samples> {
    return this.request(client, { part: 'counters', selectors, params }, signal) as Promise<Samples>;
  }

  private request(client: Client, request: TileRequest, signal: AbortSignal): Promise<Tile | Samples> {
    const { worker } = this;
    if (!worker) {
      return fetchTile(client, request, signal);
    }
    return new Promise((resolve, reject) => {
      const id = ++this.lastId;
      this.pending.set(id, { client, request, signal, resolve, reject });
      worker.postMessage({ id, base: client.address('', {}), request } satisfies WorkerRequest);
      signal.addEventListener(
        'abort',
        () => worker.postMessage({ id, abort: true } satisfies WorkerRequest),
        {
          once: true,
        },
      );
    });
  }

  private settle(reply: WorkerReply): void {
    const pending = this.pending.get(reply.id);
    this.pending.delete(reply.id);
    if ('data' in reply) {
      pending?.resolve(reply.data);
    } else {
      const { refused, message } = reply;
      pending?.reject(refused ? new ApiError(refused.status, refused.info) : new Error(message));
    }
  }
}

/** The page's reader; its worker starts when the timeline's code is loaded, before the first request. */
export const reader = new TileReader(startWorker());
