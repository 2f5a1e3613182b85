"""Tests of FLOPs and bytes from hardware counters, computed by hand, and of incomplete sets of counters."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.model.work.operator_events import (
    counter_range,
    instruction_counters,
    kernel,
    launch,
    operator,
    traffic_counters,
)
from tests.support.traces import read
from torch_tb_profiler.model.counters.dispatches import COUNTER_PREFIX
from torch_tb_profiler.model.counters.measures import AMD, NVIDIA, CounterWork, counter_work

NO_INSTRUCTIONS, TENSOR_CORES, MAY_USE_TENSOR_CORES, NO_TRAFFIC = NVIDIA.reasons
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)"
PRODUCT = "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_nn"
GENERIC_NAME = "kernel_0"
PIPE = "sm__inst_executed_pipe_tensor.sum"
BF16 = "sm__ops_path_tensor_src_bf16_dst_fp32"


def measure(name: str, counters: dict[str, Any]) -> tuple[float, float, str | None]:
    found = counter_work(read([operator("aten::x", 0, 9), launch(1, 1), counter_range(name, 0, counters)]))
    return float(found.flops[0]), float(found.bytes[0]), found.reason[0]


def test_a_fused_multiply_add_is_two_operations_in_every_precision() -> None:
    counts = instruction_counters(
        hadd=1, hmul=10, hfma=100, fadd=1000, fmul=10**4, ffma=10**5, dadd=10**6, dmul=10**7, dfma=10**8
    )
    assert measure(ADD, {**counts, **traffic_counters(3, 4)}) == (211_211_211, 7, None)


def test_the_majority_of_operations_decides_the_precision() -> None:
    for counts, double in (({"dfma": 3, "ffma": 2}, True), ({"dadd": 3, "ffma": 2}, False)):
        found = counter_work(read([launch(1, 1), counter_range(ADD, 0, instruction_counters(**counts))]))
        assert found.double.tolist() == [double]


@pytest.mark.parametrize("missing", sorted(instruction_counters()))
def test_flops_are_unknown_without_one_of_the_instructions(missing: str) -> None:
    counts = {key: value for key, value in instruction_counters(ffma=5).items() if key != missing}
    flops, _, reason = measure(ADD, counts)
    assert math.isnan(flops)
    assert reason == NO_INSTRUCTIONS


@pytest.mark.parametrize(
    ("name", "more", "flops", "reason"),
    [
        (PRODUCT, {}, None, TENSOR_CORES),
        (PRODUCT, {PIPE: 64}, None, TENSOR_CORES),
        (PRODUCT, {f"{BF16}.sum": 4096}, 4096 + 10, None),
        (PRODUCT, {PIPE: 64, f"{BF16}.sum": 4096, f"{BF16}_sparsity_off.sum": 4096}, 4096 + 10, None),
        (PRODUCT, {PIPE: 64, "sm__ops_path_tensor_src_int8.sum": 4096}, None, TENSOR_CORES),
        (GENERIC_NAME, {}, None, MAY_USE_TENSOR_CORES),
        (GENERIC_NAME, {PIPE: 0}, 10, None),
        (GENERIC_NAME, {PIPE: 1}, None, TENSOR_CORES),
        ("__missing__", {}, None, MAY_USE_TENSOR_CORES),
        (ADD, {PIPE: 0}, 10, None),
    ],
)
def test_tensor_cores_count_only_where_their_operations_do(
    name: str, more: dict[str, int], flops: float | None, reason: str | None
) -> None:
    """Instructions of vector units don't include the operations of Tensor Cores."""
    found, _, why = measure(name, {**instruction_counters(ffma=5), **traffic_counters(1, 1), **more})
    assert (None if math.isnan(found) else found) == flops
    assert why == reason


@pytest.mark.parametrize(
    ("counters", "moved"),
    [
        (traffic_counters(3, 4), 7),
        ({"dram__bytes.sum": 9}, 9),
        ({**traffic_counters(3, 4), "dram__bytes.sum": 9}, 7),
        ({"dram__bytes_read.sum": 3}, None),
    ],
)
def test_traffic_is_the_bytes_read_and_written(counters: dict[str, int], moved: int | None) -> None:
    _, found, reason = measure(ADD, {**instruction_counters(), **counters})
    assert (None if math.isnan(found) else found) == moved
    assert reason == (NO_TRAFFIC if moved is None else None)


def test_counters_of_any_name_are_included() -> None:
    found = counter_work(read([launch(1, 1), counter_range(ADD, 0, {"l1tex__hits.sum": 2.5, "note": "text"})]))
    assert found.names == ("l1tex__hits.sum",)
    assert found.values.tolist() == [[2.5]]


WAVES = {"ADD_F16": 1, "MUL_F16": 10, "TRANS_F16": 100, "FMA_F16": 1000, "ADD_F32": 10**4, "MUL_F32": 10**5,
         "TRANS_F32": 10**6, "FMA_F32": 10**7, "ADD_F64": 10**8, "MUL_F64": 10**9, "TRANS_F64": 10**10,
         "FMA_F64": 10**11}  # fmt: skip
CIJK = "Cijk_Ailk_Bljk_BBS_BH_MT128x128x32_MI32x32x8x1"


def measure_amd(name: str, counters: dict[str, float]) -> CounterWork:
    """Return the work of a kernel with counters of rocprofv3."""
    args: dict[str, Any] = {COUNTER_PREFIX + counter: value for counter, value in counters.items()}
    return counter_work(read([operator("aten::x", 0, 9), launch(1, 1), kernel(name, 20, 5, 1, **args)]))


def valu(**waves: int) -> dict[str, float]:
    """Return the counters of all vector instructions, 0 unless given."""
    return {f"SQ_INSTS_VALU_{kind}": float(waves.get(kind, 0)) for kind in WAVES}


def test_an_amd_wave_is_64_operations_or_128_if_fused() -> None:
    found = measure_amd(ADD, {**valu(**WAVES), "FETCH_SIZE": 3, "WRITE_SIZE": 0.5})
    assert found.flops.tolist() == [64 * 211_121_112_111]
    assert found.bytes.tolist() == [3.5 * 1024]
    assert (found.double.tolist(), found.reason) == ([True], (None,))


@pytest.mark.parametrize("missing", sorted(WAVES))
def test_flops_are_unknown_without_one_of_amds_instructions(missing: str) -> None:
    counts = valu(ADD_F32=1)
    del counts[f"SQ_INSTS_VALU_{missing}"]
    found = measure_amd(ADD, counts)
    assert math.isnan(found.flops[0])
    assert found.reason == (AMD.reasons[0],)


@pytest.mark.parametrize(
    ("name", "more", "flops", "reason"),
    [
        (CIJK, {}, None, 1),
        (CIJK, {"SQ_INSTS_VALU_MFMA_MOPS_BF16": 8}, 512 * 8 + 128, None),
        (CIJK, {"SQ_INSTS_VALU_MFMA_MOPS_F16": 0, "SQ_INSTS_VALU_MFMA_MOPS_F8": 2}, 512 * 2 + 128, None),
        (CIJK, {"SQ_INSTS_VALU_MFMA_MOPS_I8": 8}, None, 1),
        (CIJK, {"SQ_INSTS_VALU_MFMA_MOPS_F16": 0}, None, 1),  # in a type that was not counted
        (GENERIC_NAME, {}, None, 2),
        (GENERIC_NAME, {"SQ_INSTS_MFMA": 0}, 128, None),
        (ADD, {}, 128, None),
    ],
)
def test_amd_matrix_cores_count_only_where_their_operations_do(
    name: str, more: dict[str, float], flops: float | None, reason: int | None
) -> None:
    found = measure_amd(name, {**valu(FMA_F32=1), "FETCH_SIZE": 1, "WRITE_SIZE": 1, **more})
    assert (None if math.isnan(found.flops[0]) else found.flops[0]) == flops
    assert found.reason == (None if reason is None else AMD.reasons[reason],)


def test_matrix_products_in_double_precision_are_recognized() -> None:
    for kind, double in (("F64", True), ("F32", False)):
        found = measure_amd(CIJK, {**valu(FMA_F32=1), f"SQ_INSTS_VALU_MFMA_MOPS_{kind}": 8})
        assert found.double.tolist() == [double]


def test_traffic_in_one_direction_only_is_unknown() -> None:
    found = measure_amd(ADD, {**valu(), "FETCH_SIZE": 3})
    assert math.isnan(found.bytes[0])
    assert found.reason == (AMD.reasons[3],)
