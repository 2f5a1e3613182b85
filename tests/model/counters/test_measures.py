"""FLOPs and bytes of hardware counters, by hand; and what a part of the counters does not tell."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.model.work.drawn import counted, instructions, launch, operator, traffic
from tests.support.traces import read
from torch_tb_profiler.model.counters.measures import (
    NO_INSTRUCTIONS,
    NO_TRAFFIC,
    PERHAPS_TENSOR_CORES,
    TENSOR_CORES,
    measures,
)

ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)"
PRODUCT = "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_nn"
TOLD_BY_NO_NAME = "kernel_0"
PIPE = "sm__inst_executed_pipe_tensor.sum"
BF16 = "sm__ops_path_tensor_src_bf16_dst_fp32"


def measured(name: str, counters: dict[str, Any]) -> tuple[float, float, str | None]:
    found = measures(read([operator("aten::x", 0, 9), launch(1, 1), counted(name, 0, counters)]))
    return float(found.flops[0]), float(found.bytes[0]), found.reason[0]


def test_a_fused_multiply_add_is_two_operations_in_every_precision() -> None:
    counts = instructions(
        hadd=1, hmul=10, hfma=100, fadd=1000, fmul=10**4, ffma=10**5, dadd=10**6, dmul=10**7, dfma=10**8
    )
    assert measured(ADD, {**counts, **traffic(3, 4)}) == (211_211_211, 7, None)


def test_most_of_the_operations_decide_the_precision() -> None:
    for counts, double in (({"dfma": 3, "ffma": 2}, True), ({"dadd": 3, "ffma": 2}, False)):
        found = measures(read([launch(1, 1), counted(ADD, 0, instructions(**counts))]))
        assert found.double.tolist() == [double]


@pytest.mark.parametrize("missing", sorted(instructions()))
def test_without_one_of_the_instructions_the_operations_are_unknown(missing: str) -> None:
    counts = {key: value for key, value in instructions(ffma=5).items() if key != missing}
    flops, _, reason = measured(ADD, counts)
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
        (TOLD_BY_NO_NAME, {}, None, PERHAPS_TENSOR_CORES),
        (TOLD_BY_NO_NAME, {PIPE: 0}, 10, None),
        (TOLD_BY_NO_NAME, {PIPE: 1}, None, TENSOR_CORES),
        ("__missing__", {}, None, PERHAPS_TENSOR_CORES),
        (ADD, {PIPE: 0}, 10, None),
    ],
)
def test_tensor_cores_count_only_where_their_operations_do(
    name: str, more: dict[str, int], flops: float | None, reason: str | None
) -> None:
    """Instructions of vector units say nothing of what Tensor Cores did."""
    found, _, why = measured(name, {**instructions(ffma=5), **traffic(1, 1), **more})
    assert (None if math.isnan(found) else found) == flops
    assert why == reason


@pytest.mark.parametrize(
    ("counters", "moved"),
    [
        (traffic(3, 4), 7),
        ({"dram__bytes.sum": 9}, 9),
        ({**traffic(3, 4), "dram__bytes.sum": 9}, 7),
        ({"dram__bytes_read.sum": 3}, None),
    ],
)
def test_traffic_is_what_was_read_and_written(counters: dict[str, int], moved: int | None) -> None:
    _, found, reason = measured(ADD, {**instructions(), **counters})
    assert (None if math.isnan(found) else found) == moved
    assert reason == (NO_TRAFFIC if moved is None else None)


def test_counters_of_any_name_are_kept() -> None:
    found = measures(read([launch(1, 1), counted(ADD, 0, {"l1tex__hits.sum": 2.5, "note": "text"})]))
    assert found.names == ("l1tex__hits.sum",)
    assert found.values.tolist() == [[2.5]]
