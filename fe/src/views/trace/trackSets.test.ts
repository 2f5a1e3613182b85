import { expect, it, test } from 'vitest';
import golden from '../../../../tests/golden/payloads/trace.json';
import type { TracePayload } from '../../api/types';
import { memberOf, mergePayloads } from '../../timeline/tiles/merge';
import {
  initiallyHidden,
  emptyTracks,
  toggleAll,
  stragglersFirst,
  busiestTracks,
  initiallyHiddenOfRanks,
} from './trackSets';

test('hidden tracks are never among the busiest', () => {
  const [thread, stream] = golden.trace.tracks.filter(({ kind }) => kind === 'thread' || kind === 'stream');
  const tracks = [
    { ...thread!, id: 0, slices: 5 },
    { ...stream!, id: 1, slices: 3 },
    { ...thread!, id: 2, slices: 99 },
  ];
  const payload = { ...golden.trace, tracks } as unknown as TracePayload;
  expect(busiestTracks(payload, 2)).toEqual([0, 2]);
  expect(busiestTracks(payload, 2, [2])).toEqual([0, 1]);
});

const trace = golden.trace as unknown as TracePayload;
type Track = TracePayload['tracks'][number];
const [like] = trace.tracks.filter(track => track.kind === 'thread');
const track = (id: number, change: Partial<Track>): Track => ({
  ...like!,
  ...{ id, kind: 'thread', group: 0, depth: 1, slices: 3, untimed: 0, python_slices: 0 },
  ...change,
});
const of = (...tracks: Track[]): TracePayload => ({
  ...trace,
  groups: [
    { ...trace.groups[0]!, kind: 'process' },
    { ...trace.groups[0]!, kind: 'profiler' },
  ],
  tracks: [track(9, { kind: 'steps', group: null }), ...tracks],
});

const INSTANTS = { kind: 'instants', slices: 0, instants: 5 } as const;

it("hides instants and the profiler's own tracks initially", () => {
  const own = [track(3, { group: 1 }), track(4, { ...INSTANTS, group: 1 })];
  expect(initiallyHidden(of(track(0, {}), track(1, INSTANTS), ...own)).toSorted()).toEqual([1, 3, 4]);
  expect(initiallyHidden(of(track(0, { kind: 'stream' }), track(1, { kind: 'counter' })))).toEqual([]);
});

it('shows them if there is nothing else', () => {
  expect(initiallyHidden(of(track(1, INSTANTS), track(3, { group: 1 })))).toEqual([3]);
  expect(initiallyHidden(of(track(0, { slices: 2, untimed: 2 }), track(1, INSTANTS)))).toEqual([]);
  expect(initiallyHidden(of(track(3, { group: 1 }), track(4, { ...INSTANTS, group: 1 })))).toEqual([]);
});

it('finds the tracks with nothing to draw, unless that is all of them', () => {
  const frames = track(1, { depth: 0, python_slices: 3 });
  expect(emptyTracks(of(track(0, {}), frames, track(2, { kind: 'counter', depth: 0 })))).toEqual([1]);
  expect(emptyTracks(of(frames))).toEqual([]);
});

it('keeps only differences from the initial state in the address', () => {
  const shown = toggleAll([1, 2], [2, 3]);
  expect(shown).toEqual([1, 3]);
  expect(toggleAll([1, 2], toggleAll([1, 2], shown))).toEqual(shown);
  expect(toggleAll([1, 2], [])).toEqual([1, 2]);
});

const mergedOf = (payload: TracePayload) =>
  mergePayloads(
    [0, 1, 2].map(number => ({ title: `rank ${number}`, shift: 0, payload })),
    0,
  );
const merged = mergedOf(trace);
const titles = (groups: readonly number[]) => groups.map(group => merged.groups[group]!.name.split(' · ')[0]);

/** Return the names of the visible tracks of each rank. */
function visibleTracks(tracks: readonly Track[], late: readonly number[]): string[][] {
  const payload = mergedOf({ ...trace, tracks: [...tracks] });
  const hidden = initiallyHiddenOfRanks(payload, late, 3);
  const visible = payload.tracks.filter(({ id, kind }) => kind !== 'steps' && !hidden.includes(id));
  return [0, 1, 2].map(index =>
    visible.filter(({ id }) => memberOf(id, 3).index === index).map(({ name }) => name),
  );
}

it('puts the late ranks on top, the latest first, and leaves all others as they were', () => {
  const each = trace.groups.length;
  const times = (...names: string[]) => names.flatMap(name => Array.from({ length: each }, () => name));
  expect(titles(stragglersFirst(merged, [2], 3))).toEqual(times('rank 2', 'rank 0', 'rank 1'));
  expect(titles(stragglersFirst(merged, [2, 1], 3))).toEqual(times('rank 2', 'rank 1', 'rank 0'));
  expect(stragglersFirst(merged, [], 3)).toEqual([]);
});

it('leaves computation and communication of each rank, and of a late one what its device waits for', () => {
  const [stream, others] = [
    trace.tracks.find(({ kind }) => kind === 'stream')!,
    trace.tracks.filter(({ kind }) => kind !== 'stream'),
  ];
  const streams = [
    { ...stream, name: 'copies', role: 'copy', slices: 99 },
    { ...stream, name: 'most', slices: 5 },
    { ...stream, name: 'little', slices: 1 },
    { ...stream, name: 'reduces', role: 'communication', slices: 1 },
    { ...stream, name: 'sends', role: 'communication', slices: 2 },
    { ...stream, name: 'other device', device: 1, slices: 1 },
  ].map((track, i) => ({ ...track, id: 10 + i }));
  const lanes = ['most', 'reduces', 'sends', 'other device'];
  const [first, second, third] = visibleTracks([...others, ...streams], [1]);
  expect(first).toEqual(lanes);
  expect(second).toEqual(['Why idle', ...lanes]);
  expect(third).toEqual(lanes);
});

it('leaves the threads where no stream computes or communicates', () => {
  const threads = trace.tracks.filter(({ kind }) => kind !== 'stream' && kind !== 'blame');
  expect(threads.some(({ kind }) => kind === 'counter')).toBe(true);
  const names = threads.filter(({ kind }) => kind === 'thread').map(({ name }) => name);
  expect(visibleTracks(threads, [1])).toEqual([names, names, names]);
});
