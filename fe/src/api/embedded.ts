// Answers that lie in the page itself: a report, which asks nobody.
import { decodeBytes } from '../base/base64';
import { ApiError, type Client, type ReportInfo } from './client';
import type { ErrorInfo, Selectors } from './types';

/** What the page of a report holds: the bodies that the routes answered when it was made. */
export interface Report extends ReportInfo {
  /** The traces it is about, the first one first. */
  recordings: Required<Selectors>[];
  /** A path and its parameters, those of the trace among them, and the number of the answer. */
  entries: [path: string, params: Record<string, string>, answer: number][];
  /** HTTP status, and the JSON body: gzip, then base64. */
  answers: [status: number, body: string][];
}

/** Of these one answer about the whole trace stands for those about all of its windows. */
const WINDOWED = ['view/trace/tile', 'view/trace/blame', 'view/trace/counters'];
const WINDOW = ['begin', 'end', 'width', 'tracks'];

export function embeddedClient(report: Report): Client {
  const numbers = new Map(report.entries.map(([path, params, answer]) => [keyOf(path, params), answer]));

  async function answer<T>(path: string, params: Record<string, string>): Promise<T> {
    const { worker: _, ...ofRun } = params;
    const number = numbers.get(keyOf(path, params)) ?? numbers.get(keyOf(path, ofRun));
    if (number === undefined) {
      throw missing(report, params);
    }
    const [status, packed] = report.answers[number]!;
    const body = await unpack(packed);
    if (status >= 400) {
      throw new ApiError(status, (body as { error: ErrorInfo }).error);
    }
    return body as T;
  }

  return {
    report,
    runs: () => answer('runs', {}),
    workers: run => answer('workers', { run }),
    health: run => answer('health', { run }),
    views: selectors => answer('views', named(report, selectors)),
    view: (slug, selectors, params) => {
      const path = `view/${slug}`;
      const dropped = WINDOWED.includes(path) ? WINDOW : [];
      const asked = Object.entries(params).filter(([name]) => !dropped.includes(name));
      return answer(path, { ...named(report, selectors), ...Object.fromEntries(asked) });
    },
    address: () => '',
    retry: selectors => Promise.reject(missing(report, named(report, selectors))),
  };
}

/** The names of the first trace that has those which are given; what no trace has stays as it is. */
function named(report: Report, selectors: Selectors): Record<string, string> {
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

function missing(report: Report, { run, worker, span }: Record<string, string>): ApiError {
  const known = report.recordings.some(
    each => each.run === run && each.worker === worker && each.span === span,
  );
  const what = known ? 'this' : [run, worker, span && `span ${span}`].filter(Boolean).join(' · ');
  const message = `${what} is not part of this report`;
  const hint = `\`${report.command}\` opens all of it.`;
  return new ApiError(404, { code: 'not_found', message, hint, where: null, stage: null });
}

async function unpack(packed: string): Promise<unknown> {
  const bytes = new Blob([decodeBytes(packed)]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(bytes).json();
}
