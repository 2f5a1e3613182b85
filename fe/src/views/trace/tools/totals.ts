// The slices of a window by name, on each of several traces, as a table.
import type { Client } from '../../../api/client';
import type { Selectors, TracePayload, TraceSelection } from '../../../api/types';
import { toCsv } from '../../../base/browser/save';
import type { Span } from '../../../timeline/tiles/store';
import { range } from '../answers';

export interface Counted {
  /** What its columns are called; empty for the only one. */
  title: string;
  selectors: Selectors;
  /** ns from its clock to that of the window. */
  shift: number;
  payload: TracePayload;
}

/** CSV with a row for each name and a count and ns on each trace; what takes most comes first. */
export async function totalsOf(client: Client, traces: readonly Counted[], window: Span): Promise<string> {
  const each = await Promise.all(traces.map(trace => rowsOf(client, trace, window)));
  const names = new Map<string, number>();
  each.forEach(rows => rows.forEach(row => names.set(row.name, (names.get(row.name) ?? 0) + row.total_ns)));
  const found = each.map(rows => new Map(rows.map(row => [row.name, row])));
  return toCsv(
    [
      'name',
      ...traces.flatMap(({ title }) => ['count', 'total_ns', 'self_ns'].map(id => `${title} ${id}`.trim())),
    ],
    [...names]
      .sort(([, a], [, b]) => b - a)
      .map(([name]) => [
        name,
        ...found.flatMap(rows => {
          const row = rows.get(name);
          return row ? [row.count, row.total_ns, row.self_ns] : [0, 0, 0];
        }),
      ]),
  );
}

async function rowsOf(client: Client, { selectors, shift, payload }: Counted, { begin, end }: Span) {
  const answer = await client.view<TraceSelection>('trace/selection', selectors, {
    ...range(begin - shift, end - shift),
    ...(payload.python ? { python: 'true' } : {}),
  });
  if (answer.state !== 'ready') {
    throw new Error('The trace is being read. Try again when it is there.');
  }
  return answer.payload.rows;
}
