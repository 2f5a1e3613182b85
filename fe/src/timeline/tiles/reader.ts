// Tiles and counters, asked for and decoded in a worker: the page's own thread stays free to draw.
import { ApiError, type Client } from '../../api/client';
import type { Selectors } from '../../api/types';
import { answer, type Order, type Question, type Reply } from './answer';
import { startWorker } from './start';
import type { Samples, Tile } from './tile';

interface Open {
  question: Question;
  signal: AbortSignal;
  client: Client;
  resolve: (data: Tile | Samples) => void;
  reject: (error: unknown) => void;
}

export class Reader {
  private readonly open = new Map<number, Open>();
  private last = 0;

  /** Without a worker, or when it cannot start (some hosts sandbox the page), the page's thread does it all. */
  constructor(private worker: Worker | null) {
    worker?.addEventListener('message', ({ data }: MessageEvent<Reply>) => this.settle(data));
    worker?.addEventListener('error', () => {
      this.worker = null;
      for (const { client, question, signal, resolve, reject } of this.open.values()) {
        answer(client, question, signal).then(resolve, reject);
      }
      this.open.clear();
    });
  }

  tile(
    client: Client,
    selectors: Selectors,
    params: Record<string, string>,
    signal: AbortSignal,
  ): Promise<Tile> {
    return this.ask(client, { part: 'tile', selectors, params }, signal) as Promise<Tile>;
  }

  blame(
    client: Client,
    selectors: Selectors,
    params: Record<string, string>,
    signal: AbortSignal,
  ): Promise<Tile> {
    return this.ask(client, { part: 'blame', selectors, params }, signal) as Promise<Tile>;
  }

  counters(
    client: Client,
    selectors: Selectors,
    params: Record<string, string>,
    signal: AbortSignal,
  ): Promise<Samples> {
    return this.ask(client, { part: 'counters', selectors, params }, signal) as Promise<Samples>;
  }

  private ask(client: Client, question: Question, signal: AbortSignal): Promise<Tile | Samples> {
    const { worker } = this;
    if (!worker) {
      return answer(client, question, signal);
    }
    return new Promise((resolve, reject) => {
      const id = ++this.last;
      this.open.set(id, { client, question, signal, resolve, reject });
      worker.postMessage({ id, base: client.address('', {}), question } satisfies Order);
      signal.addEventListener('abort', () => worker.postMessage({ id, abort: true } satisfies Order), {
        once: true,
      });
    });
  }

  private settle(reply: Reply): void {
    const asked = this.open.get(reply.id);
    this.open.delete(reply.id);
    if ('data' in reply) {
      asked?.resolve(reply.data);
    } else {
      const { refused, message } = reply;
      asked?.reject(refused ? new ApiError(refused.status, refused.info) : new Error(message));
    }
  }
}

/** The page's one reader; its worker starts with the code of the timeline, before anything is asked. */
export const reader = new Reader(startWorker());
