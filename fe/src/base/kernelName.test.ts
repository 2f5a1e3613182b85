import { expect, test } from 'vitest';
import { shortKernelName } from './kernelName';

test.each([
  [
    'void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>, at::detail::Array<char*, 3> >(int, at::native::AddFunctor<float>)',
    'at::native::vectorized_elementwise_kernel<…>',
  ],
  [
    'void (anonymous namespace)::softmax_warp_forward<float, 10>(float*, float const*)',
    'softmax_warp_forward<…>',
  ],
  ['ampere_sgemm_128x64_nn', 'ampere_sgemm_128x64_nn'],
  ['triton_poi_fused_add_0', 'triton_poi_fused_add_0'],
  ['void cutlass::Kernel<cutlass_80_tensorop_s1688gemm<3> >(cutlass::Params)', 'cutlass::Kernel<…>'],
  ['Memcpy HtoD (Pageable -> Device)', 'Memcpy HtoD (Pageable -> Device)'],
  ['void foo<(anonymous namespace)::Bar>(int)', 'foo<…>'],
  ['', ''],
])('%s', (name, short) => {
  expect(shortKernelName(name)).toBe(short);
});
