import { expect, test } from 'vitest';
import { readTraceState, writeTraceState } from './state';

test('what is written is read again, and nothing else changes', () => {
  const change = {
    window: { begin: -120.5, end: 4000.2 },
    event: 0,
    path: true,
    moment: null,
    area: { begin: 5, end: 9 },
    sums: 'counter' as const,
    marks: [1, 2],
    pinned: [3],
    folded: ['g1', '7'],
    deep: [3],
    hidden: [8],
    order: [2, 1],
    find: 'a&b=c,d #1',
    regex: true,
    color: 'module' as const,
    clock: 'wall' as const,
  };
  const params = writeTraceState({ python: 'true' }, change);
  expect(params.python).toBe('true');
  expect(readTraceState(params)).toEqual({ ...change, window: { begin: -121, end: 4001 } });
  const cleared = writeTraceState(params, {
    event: null,
    path: false,
    area: null,
    color: 'class',
    marks: [],
  });
  expect(Object.keys(cleared)).not.toContain('event');
  expect(Object.keys(cleared)).not.toContain('path');
  expect(readTraceState(cleared)).toMatchObject({ event: null, area: null, color: 'class', marks: [] });
});

test('a part of the time of a device is in the address; a slice comes before it', () => {
  const moment = { device: 1, at: -5, until: 20, category: 'data_loading' };
  const params = writeTraceState({}, { moment });
  expect(params).toEqual({ moment: '1:-5-20:data_loading' });
  expect(readTraceState(params).moment).toEqual(moment);
  expect(readTraceState({ moment: '0:7' }).moment).toEqual({
    device: 0,
    at: 7,
    until: null,
    category: '',
  });
  expect(readTraceState({ ...params, event: '3' }).moment).toBeNull();
  expect(writeTraceState(params, { moment: null })).toEqual({});
});

test('nonsense in the address is no state', () => {
  expect(readTraceState({ at: '9-5', event: 'x', moment: '1:x', pins: 'a,1', color: 'pink' })).toMatchObject({
    window: null,
    event: null,
    moment: null,
    pinned: [1],
    color: 'class',
  });
});
