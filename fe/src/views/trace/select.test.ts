import { expect, test } from 'vitest';
import golden from '../../../../tests/golden/payloads/trace.json';
import type { TracePayload } from '../../api/types';
import { mainTracks } from './select';

test('a track that is not shown stands for nothing, however many slices it has', () => {
  const [thread, stream] = golden.trace.tracks.filter(({ kind }) => kind === 'thread' || kind === 'stream');
  const tracks = [
    { ...thread!, id: 0, slices: 5 },
    { ...stream!, id: 1, slices: 3 },
    { ...thread!, id: 2, slices: 99 },
  ];
  const payload = { ...golden.trace, tracks } as unknown as TracePayload;
  expect(mainTracks(payload, 2)).toEqual([0, 2]);
  expect(mainTracks(payload, 2, [2])).toEqual([0, 1]);
});
