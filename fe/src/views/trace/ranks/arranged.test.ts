import { expect, it } from 'vitest';
import golden from '../../../../../tests/golden/payloads/trace.json';
import type { TracePayload } from '../../../api/types';
import { mergePayloads } from '../../../timeline/tiles/merge';
import { foldedTracks, lateFirst, partingTracks } from './arranged';

const rank = golden.trace as unknown as TracePayload;
const members = [0, 1, 2].map(number => ({ title: `rank ${number}`, shift: 0, payload: rank }));
const merged = mergePayloads(members, 0);
const titles = (groups: readonly number[]) => groups.map(group => merged.groups[group]!.name.split(' · ')[0]);

it('puts the late ranks on top, the latest first, and leaves all others as they were', () => {
  const each = rank.groups.length;
  const times = (...names: string[]) => names.flatMap(name => Array.from({ length: each }, () => name));
  expect(titles(lateFirst(merged, [2], 3))).toEqual(times('rank 2', 'rank 0', 'rank 1'));
  expect(titles(lateFirst(merged, [2, 1], 3))).toEqual(times('rank 2', 'rank 1', 'rank 0'));
  expect(lateFirst(merged, [], 3)).toEqual([]);
});

it('hides and folds at first what would part the ranks, until that is chosen otherwise', () => {
  const hidden = partingTracks(merged);
  expect(merged.tracks.filter(track => track.kind === 'counter').every(({ id }) => hidden.includes(id))).toBe(
    true,
  );
  const streams = merged.tracks.filter(track => track.kind === 'stream');
  const threads = merged.tracks.filter(track => track.kind === 'thread');
  expect(streams.length).toBeGreaterThan(0);
  const folded = foldedTracks(merged);
  expect(threads.every(({ id }) => folded.includes(String(id)))).toBe(true);
  expect(streams.some(({ id }) => folded.includes(String(id)))).toBe(false);
});
