import { expect, test } from 'vitest';
import { codeToWrite, joinUnits, shorten, shortenDistinct } from './text';

test('code to write is found, but not names of missing things', () => {
  const marks =
    'no mark (`[pl][profile]`) is recorded: train with `Trainer(profiler=PyTorchProfiler(record=True))`';
  expect(codeToWrite(marks)).toEqual(['Trainer(profiler=PyTorchProfiler(record=True))']);
  expect(codeToWrite('no metrics (AORTA: `rank_*_metrics.jsonl`)')).toEqual([]);
  expect(codeToWrite('set `with_stack=True` in `torch.profiler.profile(...)`, or `with_stack=True`')).toEqual(
    ['with_stack=True'],
  );
  expect(codeToWrite('call `prof.step()`, add `ProfilerActivity.CUDA`, or `rocprofv3 --hip-trace`')).toEqual([
    'prof.step()',
    'ProfilerActivity.CUDA',
    'rocprofv3 --hip-trace',
  ]);
  expect(codeToWrite('a backtick ` alone, `a=1`')).toEqual([]);
});

test('a name is cut in the middle, so that its end stays visible', () => {
  expect(shorten('abcdefgh', 8)).toBe('abcdefgh');
  expect(shorten('abcdefgh', 5)).toBe('ab…gh');
  expect(shorten('abcdefgh', 2)).toBe('a…');
});

test('names that would look the same keep the part where they differ', () => {
  const names = ['tnt', 'ntt', 'nnt'].map(layout => `GEMM 256×128 ${layout}, nvjet sm90`);
  expect(shortenDistinct(names, 28)).toEqual(names);
  expect(shortenDistinct([...names, 'foreach fused adam'], 14)).toEqual([
    'GEMM 2…tnt, nv',
    'GEMM 2…ntt, nv',
    'GEMM 2…nnt, nv',
    'foreach…d adam',
  ]);
  const tiles = ['128x128x8 tn, xmma', '256x128x8 nn, xmma', '256x128 nt, CUTLASS', '256x128 nn, CUTLASS'];
  const products = tiles.map(tile => `GEMM fp32 ${tile} sm80`);
  expect(shortenDistinct(products, 12)).toEqual([
    'GEMM …128x12',
    'GEMM …128x8 ',
    'GEMM …128 nt',
    'GEMM …128 nn',
  ]);
  expect(shortenDistinct(['same name twice', 'same name twice'], 8)).toEqual(['same…ice', 'same…ice']);
});

test('a number stays on the line of its unit, and nothing else is joined', () => {
  expect(joinUnits('idle for 60% of a step (123 of 286 µs), 1.5 GiB at 2 GB/s')).toBe(
    'idle for 60% of a step (123 of 286\u00a0µs), 1.5\u00a0GiB at 2\u00a0GB/s',
  );
  expect(joinUnits('3 steps, 2 hosts, 4 Bytes, 5 s/x')).toBe('3 steps, 2 hosts, 4 Bytes, 5 s/x');
});
