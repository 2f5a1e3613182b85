import { describe, expect, it } from 'vitest';
import type { RunInfo, WorkerInfo } from '../api/types';
import { awaitedTarget } from './awaited';

const runs = [{ name: 'a' }, { name: 'b' }] as RunInfo[];
const workers = [
  { name: 'w0', spans: [{ name: '1' }] },
  { name: 'w1', spans: [{ name: '1' }, { name: '2' }] },
] as WorkerInfo[];

describe('awaitedTarget', () => {
  it('is the outermost thing that the lists lack', () => {
    expect(awaitedTarget({ run: 'c', worker: 'w9' }, runs, undefined)).toEqual({
      kind: 'run',
      name: 'c',
      present: ['a', 'b'],
    });
    expect(awaitedTarget({ run: 'a', worker: 'w9', span: '2' }, runs, workers)).toEqual({
      kind: 'worker',
      name: 'w9',
      present: ['w0', 'w1'],
    });
    expect(awaitedTarget({ run: 'a', span: '2' }, runs, workers)).toMatchObject({ kind: 'span', name: '2' });
    expect(awaitedTarget({ run: 'c' }, [], undefined)).toMatchObject({ kind: 'run', present: [] });
  });

  it('is nothing while a list is unknown, or once everything is there', () => {
    expect(awaitedTarget({ run: 'c' }, undefined, undefined)).toBeNull();
    expect(awaitedTarget({ run: 'a', worker: 'w9' }, runs, undefined)).toBeNull();
    expect(awaitedTarget({ run: 'a', worker: 'w1', span: '2' }, runs, workers)).toBeNull();
    expect(awaitedTarget({}, runs, workers)).toBeNull();
  });
});
