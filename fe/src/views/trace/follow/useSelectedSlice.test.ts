import { expect, test } from 'vitest';
import golden from '../../../../../tests/golden/payloads/trace.json';
import type { TraceEvent, TraceFlows, TraceMoment, TracePath } from '../../../api/types';
import type { Highlight } from '../../../timeline/contract';
import { mergePaths } from './path';
import { selectionDrawing } from './useSelectedSlice';

type Track = Parameters<Highlight>[0];
const track = (id: number, kind: string) => ({ id, kind }) as Track;
const event = golden['trace/event'] as unknown as TraceEvent;
const flows = golden['trace/flows'] as unknown as TraceFlows;
const moment = golden['trace/moment'] as unknown as TraceMoment;
const members = [{ shift: 5 }, { shift: 0 }, { shift: 1000 }];

test('a slice of the third of three ranks lies on its track, later by its shift', () => {
  const { place } = selectionDrawing(event, undefined, undefined, members, 2);
  expect(place).toEqual({
    track: 3 * event.track! + 2,
    depth: event.depth,
    start: event.start_ns! + 1000,
    duration: event.duration_ns,
  });
});

test('arrows join slices of that rank alone', () => {
  const edge = flows.edges[0]!;
  const [arrow] = selectionDrawing(event, flows, undefined, members, 2).arrows;
  expect(arrow!.from).toMatchObject({
    track: 3 * edge.source.track! + 2,
    start: edge.source.start_ns! + 1000,
  });
  expect(arrow!.to).toMatchObject({ track: 3 * edge.target.track! + 2, start: edge.target.start_ns! + 1000 });
});

test('what was launched stands out on the streams of its rank; those of others do not fade', () => {
  const highlight = selectionDrawing(
    event,
    { ...flows, event: 4, kernels: [7] },
    undefined,
    members,
    2,
  ).highlight!;
  expect(highlight(track(3 * 9 + 2, 'stream'), 3 * 7 + 2, 0, 1, 0)).toBe(true);
  expect(highlight(track(3 * 9 + 2, 'stream'), 3 * 8 + 2, 0, 1, 0)).toBe(false);
  expect(highlight(track(3 * 9 + 1, 'stream'), 3 * 8 + 1, 0, 1, 0)).toBe(true);
});

test('a wait is drawn where its device is', () => {
  const { place } = selectionDrawing(undefined, undefined, moment, members, 0);
  expect(place).toMatchObject({ track: 3 * moment.track, start: moment.begin_ns + 5 });
});

test('of one trace everything is where the trace has it', () => {
  const { place } = selectionDrawing(event, undefined, undefined, [{ shift: 0 }], 0);
  expect(place).toMatchObject({ track: event.track, start: event.start_ns });
});

test('the path of each rank is highlighted on its own tracks, in the time of all', () => {
  const path = (id: number): TracePath => ({
    event: [id],
    track: [1],
    begin_ns: [10],
    end_ns: [20],
    more: 2,
  });
  const { byTrace: each, highlight, more } = mergePaths([path(5), path(6)], [{ shift: 0 }, { shift: 100 }]);
  expect(each[1]).toEqual({ event: [13], track: [3], begin_ns: [110], end_ns: [120], more: 2 });
  expect(more).toBe(4);
  expect(highlight!(track(3, 'thread'), 99, 105, 115, 0)).toBe(true);
  expect(highlight!(track(3, 'thread'), 99, 5, 15, 0)).toBe(false);
  expect(highlight!(track(2, 'thread'), 99, 5, 15, 0)).toBe(true);
});
