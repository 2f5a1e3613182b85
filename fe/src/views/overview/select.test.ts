import { describe, expect, it } from 'vitest';
import golden from '../../../../tests/golden/payloads/overview.json';
import type { DistributedPayload, Overview } from '../../api/types';
import type { Category } from '../../base/category';
import { evidence, idleShare, latenessByRank, parts, range, rows, shown } from './select';

const overview = (): Overview => structuredClone(golden.overview) as unknown as Overview;

describe('the overview', () => {
  it('shows one step alone when it is chosen', () => {
    expect(shown(overview(), '2')).toMatchObject({ title: 'Step 2', duration: 1e6 });
    expect(shown(overview(), undefined)).toMatchObject({ title: 'An average step' });
    const engine = { ...overview(), step_noun: 'iteration' };
    expect(shown(engine, undefined)).toMatchObject({ title: 'An average iteration' });
  });

  it('draws only what takes time and keeps what is unknown in the table', () => {
    const unknown = overview();
    unknown.reasons = { runtime: [{ text: 'not recorded', link: null }] };
    unknown.average!.categories = { ...unknown.average!.categories, runtime: null };
    expect(parts(unknown.average!.categories, 1e6).map(part => part.category)).toEqual([
      'kernel',
      'dataloader',
      'cpu_exec',
      'other',
    ]);
    const all = rows(unknown, shown(unknown, undefined)!);
    expect(all.find(one => one.category === 'runtime')).toMatchObject({
      average: null,
      reason: [{ text: 'not recorded', link: null }],
    });
    expect(all.some(one => one.category === 'memcpy')).toBe(false);
  });

  it('says how much the device waits, of one device whose times are known', () => {
    expect(idleShare(overview())).toBeCloseTo(0.5);
    const two = overview();
    two.devices.push(two.devices[0]!);
    expect(idleShare(two)).toBeNull();
    const unknown = overview();
    unknown.average!.categories = { ...unknown.average!.categories, kernel: null };
    expect(idleShare(unknown)).toBeNull();
    expect(idleShare({ ...overview(), average: null })).toBeNull();
    const note = {
      kind: 'truncated',
      severity: 'error',
      message: 'cut off',
      count: 1,
      first_offset: null,
    } as const;
    expect(idleShare({ ...overview(), health: [note] })).toBeNull();
  });

  it('gives both ends of a range in one unit', () => {
    expect(range(87_000, 91_000)).toEqual(['87.0', '91.0 µs']);
  });
});

it('opens for each part of the bar what it counts', () => {
  const of = (category: Category, step?: string) => evidence(overview(), category, step);
  expect(of('kernel')).toEqual({ view: 'kernels', params: {} });
  expect(of('kernel', '2')).toEqual({ view: 'kernels', params: { step: '2' } });
  expect(of('dataloader', '2')).toEqual({ view: 'idle', params: { step: '2' } });
  const blind = overview().devices.map(device => ({ ...device, utilization: null }));
  for (const devices of [[], blind]) {
    expect(evidence({ ...overview(), devices }, 'cpu_exec', undefined).view).toBe('operators');
    const { configuration } = overview();
    const recorded = { ...configuration.recorded, host: false };
    const none = { ...overview(), devices, configuration: { ...configuration, recorded } };
    expect(evidence(none, 'runtime', undefined).view).toBe('trace');
  }
  expect(of('memcpy', '2')).toEqual({ view: 'trace', params: { area: '2000000-3000000' } });
  const steps = overview().steps.map((step, i) => ({ ...step, complete: i > 0 }));
  const { params } = evidence({ ...overview(), steps }, 'memcpy', undefined);
  expect(params.area!.split('-')[0]).toBe(String(steps[1]!.start_ns));
});

it('averages how late a rank arrives over the steps in which it was compared', () => {
  const job = {
    heat_map: {
      workers: ['a', 'b'],
      steps: ['1', '2'],
      lateness_ns: [
        [2000, 4000],
        [null, 500],
      ],
    },
    ranks: [
      { worker: 'a', rank: 0 },
      { worker: 'b', rank: null },
    ],
  } as unknown as DistributedPayload;
  expect(latenessByRank(job)).toEqual([
    { name: 'rank 0', ns: 3000 },
    { name: 'b', ns: 500 },
  ]);
  expect(latenessByRank({ ...job, heat_map: null })).toEqual([]);
});
