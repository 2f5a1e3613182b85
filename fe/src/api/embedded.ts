// The client of a report: all answers are embedded in the page, and there is no server.
import { decodeBytes } from '../base/base64';
import { ApiError, type Client, type ReportInfo } from './client';
import type { ErrorInfo, Selectors } from './types';

/** The data of a report: the responses of the routes when the report was created. */
export interface Report extends ReportInfo {
  /** The traces in the report, in order. */
  recordings: Required<Selectors>[];
  /** A path, its parameters (including those that select the trace), and the index of the answer. */
  entries: [path: string, params: Record<string, string>, answer: number][];
  /** HTTP status, and the JSON body as base64 of gzip. */
  answers: [status: number, body: string][];
}

/** Views whose answer for the entire trace also serves requests for a part of it. */
const VIEWS_OF_WINDOWS = ['view/trace/tile', 'view/trace/blame', 'view/trace/counters'];
/** The parameters of a part of the trace. */
const WINDOW_PARAMS = ['begin', 'end', 'width', 'tracks'];

export function embeddedClient(report: Report): Client {
  const answerIndex = new Map(report.entries.map(([path, params, answer]) => [keyOf(path, params), answer]));

  async function findAnswer<T>(path: string, params: Record<string, string>): Promise<T> {
    const { worker: _, ...runParams } = params;
    const index = answerIndex.get(keyOf(path, params)) ?? answerIndex.get(keyOf(path, runParams));
    if (index === undefined) {
      throw missingAnswer(report, params);
    }
    const [status, compressed] = report.answers[index]!;
    const body = await decompress(compressed);
    if (status >= 400) {
      throw new ApiError(status, (body as { error: ErrorInfo }).error);
    }
    return body as T;
  }

  return {
    report,
    runs: () => findAnswer('runs', {}),
    workers: run => findAnswer('workers', { run }),
    health: run => findAnswer('health', { run }),
    views: selectors => findAnswer('views', completeNames(report, selectors)),
    view: (slug, selectors, params) => {
      const path = `view/${slug}`;
      const dropped = VIEWS_OF_WINDOWS.includes(path) ? WINDOW_PARAMS : [];
      const remaining = Object.entries(params).filter(([name]) => !dropped.includes(name));
      return findAnswer(path, { ...completeNames(report, selectors), ...Object.fromEntries(remaining) });
    },
    address: () => '',
    save: () => Promise.reject(new Error('A report can’t save files: it has no server.')),
    retry: selectors => Promise.reject(missingAnswer(report, completeNames(report, selectors))),
  };
}

/** Return the names of the first trace that has the given names; names that no trace has stay unchanged. */
function completeNames(report: Report, selectors: Selectors): Record<string, string> {
  const given = Object.entries(selectors).filter((entry): entry is [keyof Selectors, string] =>
    Boolean(entry[1]),
  );
  const found = report.recordings.find(recording =>
    given.every(([name, value]) => recording[name] === value),
  );
  return { ...report.recordings[0], ...found, ...Object.fromEntries(given) };
}

function keyOf(path: string, params: Record<string, string>): string {
  return JSON.stringify([path, Object.entries(params).toSorted(([a], [b]) => (a < b ? -1 : 1))]);
}

function missingAnswer(report: Report, { run, worker, span }: Record<string, string>): ApiError {
  const included = report.recordings.some(
    each => each.run === run && each.worker === worker && each.span === span,
  );
  const what = included
    ? 'this selection'
    : [run, worker, span && `span ${span}`].filter(Boolean).join(' · ');
  const message = `${what} is not part of this report`;
  const hint = `\`${report.command}\` opens all traces.`;
  return new ApiError(404, { code: 'not_found', message, hint, where: null, stage: null });
}

async function decompress(compressed: string): Promise<unknown> {
  const bytes = new Blob([decodeBytes(compressed)]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(bytes).json();
}
