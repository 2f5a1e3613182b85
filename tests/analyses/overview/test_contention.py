"""Kernels are slower beside collectives only if the same device runs them faster alone."""

from __future__ import annotations

import pytest

from tests.support.traces import draw
from torch_tb_profiler.analyses.overview.communication_rules import find_contention


@pytest.mark.parametrize(("alone_on", "found"), [("gpu0", 1), ("gpu1", 0)])
def test_only_work_of_one_device_is_compared(alone_on: str, found: int) -> None:
    """Beside the collective kernels take 600 us, and 500 us alone: there, or on another device that is faster."""
    lines = ["host user_annotation ProfilerStep#0 0 9000"]
    for number in range(6):
        beside = number > 2
        device, time = ("gpu0", 600) if beside else (alone_on, 500)
        at = 1000 * (number + 1)
        lines.append(f"{device} kernel gemm {at} {time} grid=[64,1,1] stream=7")
    lines.append("gpu0 kernel ncclDevKernel_AllReduce_Sum_bf16_RING_LL 3990 3000 stream=9")
    assert len([*find_contention(draw("\n".join(lines)))]) == found
