import { expect, test } from 'vitest';
import type { TraceRef, TraceSearch } from '../../../api/types';
import type { Highlight } from '../../../timeline/contract';
import { highlightHits, mergeMatches, hitRanges, positionInTrace, type SearchedTrace } from './search';

const traces: SearchedTrace[] = [
  { selectors: { run: 'r', worker: 'a' }, shift: 100 },
  { selectors: { run: 'r', worker: 'b' }, shift: -20 },
];

const ref = (event: number, start_ns: number): TraceRef => ({
  event,
  name: `n${event}`,
  short_name: `n${event}`,
  start_ns,
  duration_ns: 5,
  track: 1,
  depth: 0,
  color: 0,
});

const answer = (change: Partial<TraceSearch>): TraceSearch => ({
  headline: [{ text: 'said', link: null }],
  hits: 1,
  by_track: [{ track: 1, hits: 1 }],
  rows: [],
  previous: null,
  next: null,
  index: null,
  ...change,
});

const everywhere = { at: 0, event: -1, track: -1 };

test('each trace is asked from its own clock; only that of the hit is told the hit', () => {
  const stand = { at: 500, event: 7 * 2 + 1, track: 3 * 2 };
  expect(positionInTrace(stand, 1, traces)).toEqual({ at: 520, event: 7, track: -1 });
  // What the first trace has at that very time comes before the hit of the second.
  expect(positionInTrace(stand, 0, traces)).toEqual({ at: 401, event: -1, track: 3 });
  expect(positionInTrace({ ...stand, event: 7 * 2 }, 1, traces).at).toBe(520);
  expect(positionInTrace(everywhere, 0, traces)).toEqual({ at: -100, event: -1, track: -1 });
});

test('hits of all come in the order of the common clock', () => {
  const found = mergeMatches(
    [
      answer({ hits: 2, rows: [ref(1, 10), ref(2, 300)], previous: ref(1, 10), next: ref(2, 300) }),
      answer({ hits: 3, rows: [ref(1, 200)], previous: null, next: ref(1, 200) }),
    ],
    traces,
    everywhere,
    10,
  );
  expect(found.rows.map(row => [row.event, row.start_ns, row.track])).toEqual([
    [2, 110, 2],
    [3, 180, 3],
    [4, 400, 2],
  ]);
  expect([found.hits, found.next?.event, found.previous?.event]).toEqual([5, 3, 2]);
  expect(found.by_track).toEqual([
    { track: 2, hits: 1 },
    { track: 3, hits: 1 },
  ]);
});

test('the list is that of one track where one is chosen, and no longer than wanted', () => {
  const answers = [answer({ rows: [ref(1, 10), ref(2, 20)] }), answer({ rows: [ref(1, 10)] })];
  const rows = (track: number, listed: number) =>
    mergeMatches(answers, traces, { ...everywhere, track }, listed).rows.map(row => row.event);
  expect(rows(2, 10)).toEqual([2, 4]);
  expect(rows(-1, 2)).toEqual([3, 2]);
});

test('hits light what lies in their lane at their time, and nothing around or beside them', () => {
  const hits = { track: [1, 1], depth: [2, 2], begin_ns: [10, 50], end_ns: [20, 60] };
  const highlight = highlightHits(hitRanges([hits], [{ selectors: {}, shift: 1000 }]));
  const at = (start: number, end: number, depth = 2, id = 1) =>
    highlight({ id } as Parameters<Highlight>[0], 0, start, end, depth);
  expect(at(1010, 1020)).toBe(true);
  expect(at(1000, 1055)).toBe(true); // a box with a hit in it
  expect(at(1021, 1049)).toBe(false);
  expect(at(1061, 1070)).toBe(false);
  expect(at(1010, 1020, 1)).toBe(false);
  expect(at(1010, 1020, 2, 2)).toBe(false);
  expect(at(1015, 1012)).toBe(true); // shorter than what times are rounded to
  expect(highlightHits([])({ id: 1 } as Parameters<Highlight>[0], 0, 0, 9, 0)).toBe(false);
});
