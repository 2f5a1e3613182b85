"""Calls of operators whose kernels could be fewer or others, in one step of 10 ms on an H100."""

from __future__ import annotations

from typing import Any

from tests.model.work.operator_events import BF16, FLOAT, SCALAR, kernel, launch, operator

H100 = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "computeMajor": 9, "computeMinor": 0, "numSms": 132}

STEP = {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 1, "ts": 0, "dur": 10_000}
SYNC = {
    "ph": "X", "cat": "cuda_runtime", "name": "cudaDeviceSynchronize", "pid": 1, "tid": 1, "ts": 900, "dur": 9_100,
}  # fmt: skip
"""The host waits for the device: only so does less work of the device shorten the step."""

ALIGN1 = "void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_128x128_nn_align1>(Params)"
ALIGN8 = "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_128x128_nn_align8>(Params)"
SM90 = (
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel"
)

Call = tuple[str, list[Any], str, str, float]
"""Operator, input shapes, type, kernel, us on the device."""


def events(*calls: Call, host: float = 0) -> list[dict[str, Any]]:
    """Draw calls one after the other, and their kernels; `host`: us from one call to the next beyond 10."""
    found, at = [], 0.0 if host else 1_000.0
    for number, (name, dims, kind, kernel_name, time) in enumerate(calls, 1):
        begin = 10 * number + host * (number - 1)
        at = max(at, begin + 3)
        types = [kind if shape else SCALAR for shape in dims]
        found += [operator(name, begin, 8, dims=dims, types=types), launch(begin + 1, number)]
        found.append(kernel(kernel_name, at, time, number))
        at += time
    return found


def product(kernel_name: str = ALIGN1, n: int = 4100, name: str = "aten::mm", time: float = 1_200) -> Call:
    return name, [[4096, 4096], [4096, n]], BF16, kernel_name, time


B, M, K, N, D = 64, 1024, 64, 2048, 32
"""Of attention: heads of all inputs, queries, size of a head, keys, size of a value."""


def attention(softmax: str = "aten::_softmax", scores: int = N, between: str = "aten::mul", keys: int = N) -> Any:
    return (
        ("aten::bmm", [[B, M, K], [B, K, N]], BF16, SM90, 300),
        (between, [[B, M, N], []], BF16, "scale", 400),
        (softmax, [[4, 16, M, scores], [], []], BF16, "softmax", 500),
        ("aten::bmm", [[B, M, keys], [B, keys, D]], BF16, SM90, 300),
    )


def chain(*names: str, sizes: tuple[int, ...] = (1000, 1000, 1000)) -> list[Call]:
    return [
        (f"aten::{name}", [[size, 8], [8]], FLOAT, "vectorized", time)
        for name, size, time in zip(names, sizes, (300, 500, 400), strict=True)
    ]
