import type { ErrorInfo, Health, Runs, Selectors, ViewAnswer, Views, Workers } from './types';

/** A request that the server refused, with the reason; `status` is 0 if the server could not be reached. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly info: ErrorInfo,
  ) {
    super(info.message);
  }
}

/** The description of a report. */
export interface ReportInfo {
  /** When it was created, and by which version. */
  made: string;
  version: string;
  /** The log folder, and the command that opens all of its traces. */
  root: string;
  command: string;
  /** Sentences that say what the report leaves out. */
  left_out: string[];
}

export interface Client {
  /** Set if the page is a report: it has no server, only the answers that it contains. */
  report: ReportInfo | null;
  runs(): Promise<Runs>;
  workers(run: string): Promise<Workers>;
  health(run: string): Promise<Health>;
  views(selectors: Selectors): Promise<Views>;
  view<P>(
    slug: string,
    selectors: Selectors,
    params: Record<string, string>,
    signal?: AbortSignal,
  ): Promise<ViewAnswer<P>>;
  /** Return the URL of a download. */
  address(path: string, query: object): string;
  retry(selectors: Selectors): Promise<void>;
  /** Let the server write a file of a kind (csv, svg, png) into the log folder; return where it is. */
  save(kind: string, content: Blob): Promise<{ file: string }>;
}

/** Return a client of the plugin's routes; they are relative to this module, so that any path prefix works. */
export function httpClient(base: URL): Client {
  function address(path: string, query: object): URL {
    const url = new URL(path, base);
    for (const [key, value] of Object.entries(query)) {
      if (value !== undefined) {
        url.searchParams.set(key, String(value));
      }
    }
    return url;
  }

  async function request<T>(
    path: string,
    query: object,
    method = 'GET',
    signal?: AbortSignal,
    body?: Blob,
  ): Promise<T> {
    let response: Response;
    try {
      // No other site's page can send this header.
      const headers: Record<string, string> = body ? { 'X-Profiler-Page': '1' } : {};
      response = await fetch(address(path, query), { method, signal, body, headers });
    } catch {
      throw unreachable(0, 'TensorBoard is not responding');
    }
    const answer: unknown = await response.json().catch(() => null);
    if (answer === null) {
      throw unreachable(response.status, `TensorBoard returned status ${response.status} without a reason`);
    }
    if (!response.ok) {
      throw new ApiError(response.status, (answer as { error: ErrorInfo }).error);
    }
    return answer as T;
  }

  return {
    report: null,
    runs: () => request('runs', {}),
    workers: run => request('workers', { run }),
    health: run => request('health', { run }),
    views: selectors => request('views', selectors),
    view: (slug, selectors, params, signal) =>
      request(`view/${slug}`, { ...selectors, ...params }, 'GET', signal),
    address: (path, query) => address(path, query).href,
    retry: selectors => request('retry', selectors, 'POST'),
    save: (kind, content) => request('save', { kind }, 'POST', undefined, content),
  };
}

function unreachable(status: number, message: string): ApiError {
  const hint = 'Is it still running? The page reconnects by itself.';
  return new ApiError(status, { code: 'unreachable', message, hint, where: null, stage: null });
}
