import { expect, test } from 'vitest';
import golden from '../../../../tests/golden/payloads/trace.json';
import type { TracePayload } from '../../api/types';
import { memberOf, mergeColors, mergedId, mergePayloads, mergeTiles, type TraceMember } from './merge';
import type { Tile } from './tile';

const payload = (change: Partial<TracePayload>) =>
  ({ ...golden.trace, ...change }) as unknown as TracePayload;

const members: TraceMember[] = [
  { title: 'rank 0', shift: 100, payload: payload({ classes: ['kernel', 'other'], end_ns: 50 }) },
  {
    title: 'rank 1',
    shift: -20,
    payload: payload({ classes: ['other', 'python'], begin_ns: 10, end_ns: 90 }),
  },
];

const tile = (start: number, event: number, name: number, color: number): Tile => ({
  begin: 0,
  end: 64,
  unit: 1,
  lanes: new Map([[1, [{ depth: 0, first: 0, last: 1 }]]]),
  start: Float64Array.of(start),
  duration: Float64Array.of(5),
  busy: Float64Array.of(5),
  count: Uint32Array.of(1),
  event: Int32Array.of(event),
  name: Int32Array.of(name),
  color: Uint16Array.of(color),
  names: new Map([[name, `name ${name}`]]),
  shortNames: new Map([[name, `short ${name}`]]),
});

test('an id says whose it is', () => {
  for (const index of [0, 1, 2]) {
    expect(memberOf(mergedId(1234, index, 3), 3)).toEqual({ index, id: 1234 });
  }
  expect(mergedId(-1, 2, 3)).toBe(-1);
});

test('groups and tracks follow each other on one clock, the ruler is there once', () => {
  const merged = mergePayloads(members, 99);
  const { groups, tracks, counts } = golden.trace;
  expect(merged.groups.map(group => group.name)).toEqual(
    ['rank 0', 'rank 1'].flatMap(title => groups.map(({ name }) => `${title} · ${name}`)),
  );
  const [ruler, ...rest] = tracks;
  expect(merged.tracks.map(track => [track.id, track.group])).toEqual([
    [mergedId(ruler!.id, 0, 2), null],
    ...rest.map(({ id, group }) => [mergedId(id, 0, 2), group]),
    ...rest.map(({ id, group }) => [mergedId(id, 1, 2), group! + groups.length]),
  ]);
  expect([merged.begin_ns, merged.end_ns]).toEqual([-10, 150]);
  expect(merged.steps[0]!.start_ns).toBe(100);
  expect(merged.wall_ns).toBeNull(); // the golden counts from 0
  expect([merged.base_ns, merged.trace_start_ns, merged.counts.slices]).toEqual([99, 0, 2 * counts.slices]);
});

test('boxes keep their track, name and color, and move to the common clock', () => {
  const merged = mergeTiles([tile(10, 4, 0, 1), tile(30, 4, 0, 1)], members, 0, 200);
  expect([...merged.start]).toEqual([110, 10]);
  expect([...merged.event].map(id => memberOf(id, 2))).toEqual([
    { index: 0, id: 4 },
    { index: 1, id: 4 },
  ]);
  expect([...merged.lanes]).toEqual([
    [2, [{ depth: 0, first: 0, last: 1 }]],
    [3, [{ depth: 0, first: 1, last: 2 }]],
  ]);
  expect([...merged.name].map(code => merged.names.get(code))).toEqual(['name 0', 'name 0']);
  expect([...merged.name].map(code => merged.shortNames.get(code))).toEqual(['short 0', 'short 0']);
  expect([...merged.color].map(code => mergePayloads(members, 0).classes[code])).toEqual(['other', 'python']);
});

test('what is the same on all has one color, whatever its number is there', () => {
  const colors = mergeColors([
    ['none', 'model / head', 'model / body'],
    ['none', 'model / body', 'loss'],
  ]);
  expect(colors.texts).toEqual(['none', 'model / head', 'model / body', 'loss']);
  const merged = mergeTiles([tile(0, 1, 0, 2), tile(0, 1, 0, 1)], members, 0, 64, colors);
  expect([...merged.color].map(code => colors.texts[code])).toEqual(['model / body', 'model / body']);
});
