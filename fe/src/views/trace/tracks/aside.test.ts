import { expect, it } from 'vitest';
import golden from '../../../../../tests/golden/payloads/trace.json';
import type { TracePayload } from '../../../api/types';
import { asideTracks, emptyTracks, flipped } from './aside';

const whole = golden.trace as unknown as TracePayload;
type Track = TracePayload['tracks'][number];
const [like] = whole.tracks.filter(track => track.kind === 'thread');
const track = (id: number, change: Partial<Track>): Track => ({
  ...like!,
  ...{ id, kind: 'thread', group: 0, depth: 1, slices: 3, untimed: 0, python_slices: 0 },
  ...change,
});
const of = (...tracks: Track[]): TracePayload => ({
  ...whole,
  groups: [
    { ...whole.groups[0]!, kind: 'process' },
    { ...whole.groups[0]!, kind: 'profiler' },
  ],
  tracks: [track(9, { kind: 'steps', group: null }), ...tracks],
});

const INSTANTS = { kind: 'instants', slices: 0, instants: 5 } as const;

it('leaves instants and what the profiler says of itself aside', () => {
  const own = [track(3, { group: 1 }), track(4, { ...INSTANTS, group: 1 })];
  expect(asideTracks(of(track(0, {}), track(1, INSTANTS), ...own)).toSorted()).toEqual([1, 3, 4]);
  expect(asideTracks(of(track(0, { kind: 'stream' }), track(1, { kind: 'counter' })))).toEqual([]);
});

it('shows them where there is nothing else', () => {
  expect(asideTracks(of(track(1, INSTANTS), track(3, { group: 1 })))).toEqual([3]);
  expect(asideTracks(of(track(0, { slices: 2, untimed: 2 }), track(1, INSTANTS)))).toEqual([]);
  expect(asideTracks(of(track(3, { group: 1 }), track(4, { ...INSTANTS, group: 1 })))).toEqual([]);
});

it('finds the tracks with nothing to draw, unless that is all of them', () => {
  const frames = track(1, { depth: 0, python_slices: 3 });
  expect(emptyTracks(of(track(0, {}), frames, track(2, { kind: 'counter', depth: 0 })))).toEqual([1]);
  expect(emptyTracks(of(frames))).toEqual([]);
});

it('keeps in the address only what differs from how it is at first', () => {
  const shown = flipped([1, 2], [2, 3]);
  expect(shown).toEqual([1, 3]);
  expect(flipped([1, 2], flipped([1, 2], shown))).toEqual(shown);
  expect(flipped([1, 2], [])).toEqual([1, 2]);
});
