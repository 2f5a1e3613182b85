import { expect, it } from 'vitest';
import golden from '../../../../../tests/golden/payloads/trace.json';
import type { TracePayload } from '../../../api/types';
import { memberOf, mergePayloads } from '../../../timeline/tiles/merge';
import { lateFirst, partingTracks } from './arranged';

const rank = golden.trace as unknown as TracePayload;
type Track = TracePayload['tracks'][number];

const mergedOf = (payload: TracePayload) =>
  mergePayloads(
    [0, 1, 2].map(number => ({ title: `rank ${number}`, shift: 0, payload })),
    0,
  );
const merged = mergedOf(rank);
const titles = (groups: readonly number[]) => groups.map(group => merged.groups[group]!.name.split(' · ')[0]);

/** What is left of each rank, by the names of its tracks. */
function leftOf(tracks: readonly Track[], late: readonly number[]): string[][] {
  const payload = mergedOf({ ...rank, tracks: [...tracks] });
  const hidden = partingTracks(payload, late, 3);
  const left = payload.tracks.filter(({ id, kind }) => kind !== 'steps' && !hidden.includes(id));
  return [0, 1, 2].map(index =>
    left.filter(({ id }) => memberOf(id, 3).index === index).map(({ name }) => name),
  );
}

it('puts the late ranks on top, the latest first, and leaves all others as they were', () => {
  const each = rank.groups.length;
  const times = (...names: string[]) => names.flatMap(name => Array.from({ length: each }, () => name));
  expect(titles(lateFirst(merged, [2], 3))).toEqual(times('rank 2', 'rank 0', 'rank 1'));
  expect(titles(lateFirst(merged, [2, 1], 3))).toEqual(times('rank 2', 'rank 1', 'rank 0'));
  expect(lateFirst(merged, [], 3)).toEqual([]);
});

it('leaves computation and communication of each rank, and of a late one what its device waits for', () => {
  const [stream, others] = [
    rank.tracks.find(({ kind }) => kind === 'stream')!,
    rank.tracks.filter(({ kind }) => kind !== 'stream'),
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
  const [first, second, third] = leftOf([...others, ...streams], [1]);
  expect(first).toEqual(lanes);
  expect(second).toEqual(['Why idle', ...lanes]);
  expect(third).toEqual(lanes);
});

it('leaves the threads where no stream computes or communicates', () => {
  const threads = rank.tracks.filter(({ kind }) => kind !== 'stream' && kind !== 'blame');
  expect(threads.some(({ kind }) => kind === 'counter')).toBe(true);
  const names = threads.filter(({ kind }) => kind === 'thread').map(({ name }) => name);
  expect(leftOf(threads, [1])).toEqual([names, names, names]);
});
