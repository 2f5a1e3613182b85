"""Small collectives are counted by step, also where one step begins as the one before ends."""

from __future__ import annotations

import pytest

from tests.analyses.overview.advice_traces import BACKWARD
from tests.support.traces import draw
from torch_tb_profiler.analyses.overview.communication_rules import find_small_collectives
from torch_tb_profiler.base.intervals import total
from torch_tb_profiler.model.trace import Trace

STEPS = 4


def draw_steps(count: int, length: int = 10_000) -> Trace:
    """Draw steps that touch, each with a kernel and so many all-reduces of 100 us."""
    lines = [BACKWARD]
    for step in range(STEPS):
        at = step * length
        lines += [f"host user_annotation ProfilerStep#{step} {at} {length}"]
        for number in range(count + 1):
            name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL" if number else "gemm"
            call, start = 100 * step + number + 1, at + 1_000 + 100 * number
            lines += [
                f"host cuda_runtime cudaLaunchKernel {at + 10 * number} 5 correlation={call}",
                f"gpu0 kernel {name} {start} 100 correlation={call} stream=7"
                + (" In msg nelems=2048 dtype=BFloat16 Collective name=allreduce" if number else ""),
            ]
    return draw("\n".join(lines))


@pytest.mark.parametrize(("count", "found"), [(8, 1), (7, 0)])
def test_steps_that_touch_are_counted_apart(count: int, found: int) -> None:
    findings = [*find_small_collectives(draw_steps(count))]
    assert len(findings) == found
    for each in findings:
        assert each.value == count
        assert total(each.during) == pytest.approx(
            STEPS * (count - 1) * 99_488, rel=0.01
        )  # the first of each stays
