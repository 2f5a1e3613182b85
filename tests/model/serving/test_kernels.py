"""What the name of an attention kernel tells of the phase it serves."""

from __future__ import annotations

import pytest

from tests.support.traces import draw
from torch_tb_profiler.model.serving.kernels import serving_kernels

DECODE, PREFILL, NEITHER = (True, False), (False, True), (False, False)


@pytest.mark.parametrize(
    ("name", "serves"),
    [
        ("void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128>>", DECODE),
        ("void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128>>", PREFILL),
        ("void paged_attention_ll4mi_QKV_mfma16_kernel<0, __hip_bfloat16>", DECODE),
        ("kernel_unified_attention_3d", DECODE),
        ("kernel_unified_attention_2d", NEITHER),
        # The entry point of Composable Kernel names the kernel among its template arguments.
        ("_ZN7ck_tile6kentryILi2ENS_38FmhaBatchPrefillWithPagedKVCacheKernelE", PREFILL),
        ("void ck_tile::kentry<2, ck_tile::FmhaFwdKernel<x>>(x)", PREFILL),
        ("_ZN7ck_tile6kentryILi1ENS_14Layernorm2dFwdI", NEITHER),
    ],
)
def test_the_function_tells_the_phase(name: str, serves: tuple[bool, bool]) -> None:
    kernels = serving_kernels(draw(f"gpu0  kernel  {name.replace(' ', '~')}  0  10"))
    assert (bool(kernels.decode[0]), bool(kernels.prefill[0])) == serves
