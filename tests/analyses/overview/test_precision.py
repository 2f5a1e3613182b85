"""Tensor Cores: a product gains what it takes beyond the roofline with them, or nothing if bound by memory."""

from __future__ import annotations

import pytest

from tests.analyses.overview.advice_traces import get_advice, measure_share
from tests.analyses.overview.kernel_calls import H100, STEP, SYNC, events
from tests.model.work.operator_events import FLOAT
from tests.support.traces import event, read
from torch_tb_profiler.analyses.overview.finding import Advice
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.overview.advice import build_recommendation

FP32_RATE, TF32_RATE, BANDWIDTH = 66.9e12, 494.7e12, 3352e9


def find_advice(m: int, k: int, n: int, time: float, device: str = str(H100["name"])) -> Advice | None:
    call = ("aten::mm", [[m, k], [k, n]], FLOAT, "ampere_sgemm_128x64_nn", time)
    return get_advice(
        read([STEP, SYNC, *events(call)], deviceProperties=[{**H100, "name": device}]), "mixed_precision"
    )


def text_of(found: Advice) -> str:
    return plain(build_recommendation(found, "the step").text)


def test_a_product_gains_what_is_beyond_its_roof_with_tensor_cores() -> None:
    flops = 2 * 4096**3
    found = find_advice(4096, 4096, 4096, 3_000)  # 68% of the peak in float32
    assert found is not None and found.gain is not None
    assert measure_share(found) * 10_000 == pytest.approx(3_000 - 1e6 * flops / TF32_RATE, rel=0.001)
    assert found.gain.ns <= 1_000 * (3_000 - 1e6 * flops / TF32_RATE) + 1
    assert "At peak speed, that would save" in text_of(found) and "multiples" not in text_of(found)
    assert "unknown" not in text_of(found)


def test_a_product_bound_by_memory_gains_nothing() -> None:
    moved = 4 * (16 * 16384 + 16384 * 16384 + 16 * 16384)
    assert find_advice(16, 16384, 16384, 1e6 * moved / BANDWIDTH / 0.94) is None  # 94% of its memory roof
    assert find_advice(16, 16384, 16384, 2e6 * moved / BANDWIDTH) is None  # half of it: no unit moves fewer bytes
    compute = 1e6 * 2 * 160 * 16384 * 16384 / FP32_RATE  # with 160 rows the unit is the limit
    assert find_advice(160, 16384, 16384, 2 * compute) is not None


def test_a_product_too_small_for_any_unit_gains_nothing() -> None:
    slow = 1e6 * 2 * 2048**3 / FP32_RATE
    assert find_advice(2048, 2048, 2048, slow / 0.09) is None
    assert find_advice(2048, 2048, 2048, slow / 0.11) is not None


def test_sizes_that_do_not_fit_are_named() -> None:
    found = find_advice(4095, 4096, 4096, 3_000)
    assert found is not None
    assert "sizes that aren't multiples of 4, as in [[4095,4096],[4096,4096]]: pad those." in text_of(found)


def test_an_unknown_roof_bounds_nothing_and_is_said() -> None:
    found = find_advice(4096, 4096, 4096, 3_000, device="Card")
    assert found is not None and measure_share(found) * 10_000 == pytest.approx(3_000)
    assert "The roofline of these products is unknown; where memory limits them" in text_of(found)


def replayed(*kernels: str, device: str = "NVIDIA H100 80GB HBM3", each: int = 999) -> Advice | None:
    """Return the advice on a graph that replays these kernels, of `each` us, a millisecond apart."""
    graph = [event("host cuda_runtime cudaGraphLaunch 10 5 correlation=9")]
    for number, name in enumerate(kernels):
        graph.append(event(f"gpu0 kernel k {20 + 1_000 * number} {each} correlation=9") | {"name": name})
    return get_advice(read([STEP, SYNC, *graph], deviceProperties=[{**H100, "name": device}]), "mixed_precision")


SGEMM = "void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>(cutlass_80_simt_sgemm_256x128::Params)"
XMMA = "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_warpsize2x2x1_ffma_aligna4_alignc4"
TF32 = "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x256x32_warpgroupsize2x1x1_execute_segment_k_off_kernel"


def test_products_that_a_graph_replays_are_known_by_the_names_of_their_kernels() -> None:
    found = replayed(SGEMM, XMMA, TF32)
    assert found is not None and measure_share(found) * 10_000 == pytest.approx(2 * 999)
    assert "save up to" in text_of(found) and "roofline of these products is unknown" in text_of(found)


@pytest.mark.parametrize(
    "kernel",
    [
        TF32,
        "nvjet_sm90_tst_128x256_64x4_2x1_v_bz_coopA_TNN",
        "void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 4, 4, false>(float)",  # by a vector
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int, float)",
        "void cutlass::Kernel2<cutlass_80_simt_dgemm_128x64_8x5_nn_align1>(cutlass_80_simt_dgemm::Params)",
    ],
)
def test_other_replayed_kernels_gain_nothing_from_tensor_cores(kernel: str) -> None:
    assert replayed(kernel) is None
    assert replayed(SGEMM, device="NVIDIA GeForce GTX 1650") is None


@pytest.mark.parametrize(("each", "advised"), [(20, True), (19, False)])
def test_short_products_that_a_graph_replays_may_be_too_small_for_any_unit(each: int, advised: bool) -> None:
    assert (replayed(*[SGEMM] * 12, each=each) is not None) == advised
