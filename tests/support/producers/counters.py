"""Draws recordings with hardware counters: of CUPTI's range profiler, and of rocprofv3 beside a trace."""

from __future__ import annotations

from typing import Any

from tests.model.work.operator_events import (
    counter_range,
    instruction_counters,
    kernel,
    launch,
    operator,
    traffic_counters,
)
from tests.support.traces import document

GEMM = "sgemm_32x32_nn"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)"
CIJK = "Cijk_Ailk_Bljk_SB_MT64x64x16_MI16x16x4x1"
MM: dict[str, Any] = {"dims": [[10, 20], [20, 30]], "types": ["float", "float"]}  # 12,000 FLOPs, 4,400 bytes
MI300X = {"id": 0, "name": "AMD Instinct MI300X", "totalGlobalMem": 192 << 30, "numSms": 304}


def host() -> list[dict[str, Any]]:
    """Return a product in a linear layer, and an addition of two kernels."""
    return [
        operator("aten::linear", 0, 20), operator("aten::mm", 1, 15, **MM), launch(2, 1),
        operator("aten::add", 30, 20), launch(31, 2), launch(33, 3),
    ]  # fmt: skip


def cupti() -> bytes:
    """Return ranges instead of kernels."""
    return document(
        [
            *host(),
            counter_range(GEMM, 0, {**instruction_counters(ffma=6500), **traffic_counters(4000, 1200)}),
            counter_range(ADD, 1, instruction_counters(fadd=400)),
            counter_range(ADD, 2, instruction_counters(fadd=600)),
        ]
    )


def rocm() -> bytes:
    """Return kernels of an MI300X, whose clock is 1,680 of 2,100 MHz."""
    clock = {"ph": "C", "name": "sclk MHz", "pid": "GPU 0", "tid": 0, "ts": 40, "args": {"value": 1680}}
    kernels = [kernel(CIJK, 50, 10, 1), kernel(ADD, 60, 1, 2), kernel(ADD, 61, 1, 3)]
    return document([*host(), *kernels, clock], deviceProperties=[MI300X])


def table() -> str:
    """Return rocprofv3's counters of two such steps: 13,824 FLOPs and 5,120 bytes of the product."""
    lines = ['"Dispatch_Id","Kernel_Name","Counter_Name","Counter_Value"']
    instruction = [
        f"SQ_INSTS_VALU_{what}_F{bits}" for what in ("ADD", "MUL", "TRANS", "FMA") for bits in (16, 32, 64)
    ]
    for at, name in enumerate([CIJK, ADD, ADD] * 2, 1):
        values = {**dict.fromkeys(instruction, 0), "SQ_INSTS_VALU_ADD_F32": 8, "FETCH_SIZE": 4, "WRITE_SIZE": 1}
        if name == CIJK:
            values |= {"SQ_INSTS_VALU_MFMA_MOPS_F32": 26}
        lines += [f'{at},"{name}","{counter}",{value}' for counter, value in values.items()]
    return "\n".join(lines)
