import { describe, expect, it } from 'vitest';
import type { Overview } from '../../api/types';
import { parts, range, rows, shown } from './select';

const none = {
  kernel: 0,
  memcpy: 0,
  memset: 0,
  communication: 0,
  runtime: 0,
  dataloader: 0,
  cpu_exec: 0,
  other: 0,
};

function overview(change: Partial<Overview> = {}): Overview {
  const categories = { ...none, kernel: 55e6, dataloader: 33e6, cpu_exec: 12e6 };
  return {
    headline: [],
    explanation: [],
    trace_start_ns: 0,
    base_ns: 0,
    steps: [
      { name: '1', start_ns: 0, duration_ns: 100e6, complete: true, categories },
      {
        name: '2',
        start_ns: 100e6,
        duration_ns: 110e6,
        complete: true,
        categories: { ...categories, dataloader: 43e6 },
      },
      { name: '3', start_ns: 210e6, duration_ns: 10e6, complete: false, categories: none },
    ],
    average: { duration_ns: 105e6, categories: { ...categories, dataloader: 38e6 }, steps: 2 },
    steps_recorded: true,
    devices: [
      {
        id: 0,
        kind: 'CUDA',
        name: null,
        memory_bytes: null,
        compute_capability: null,
        multiprocessors: null,
        streams: 1,
        utilization: 0.5,
        sm_efficiency: null,
        achieved_occupancy: null,
        tensor_core_ratio: null,
        tensor_cores: { used_ns: 0, not_used_ns: 0, unknown_ns: 0 },
        reasons: {},
      },
    ],
    configuration: {
      workers: 1,
      device_type: 'CUDA',
      rank: null,
      world_size: null,
      backend: null,
      recorded: {},
    },
    recommendations: [],
    reasons: {},
    health: [],
    ...change,
  };
}

describe('the overview', () => {
  it('shows one step alone when it is chosen', () => {
    expect(shown(overview(), '2')).toMatchObject({ title: 'Step 2', duration: 110e6 });
  });

  it('draws only what takes time and keeps what is unknown in the table', () => {
    const unknown = overview({ reasons: { runtime: 'not recorded' } });
    unknown.average!.categories = { ...unknown.average!.categories, runtime: null };
    expect(parts(unknown.average!.categories, 105e6).map(part => part.category)).toEqual([
      'kernel',
      'dataloader',
      'cpu_exec',
    ]);
    const row = rows(unknown, shown(unknown, undefined)!).find(one => one.category === 'runtime');
    expect(row).toMatchObject({ average: null, reason: 'not recorded' });
  });

  it('gives both ends of a range in one unit', () => {
    expect(range(87_000, 91_000)).toBe('87.0 – 91.0 µs');
  });
});
