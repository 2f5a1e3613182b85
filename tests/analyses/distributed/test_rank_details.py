"""What a rank does before its collectives counts by the time in it, also where calls overlap."""

from __future__ import annotations

import pytest

from tests.support.traces import draw
from torch_tb_profiler.analyses.distributed.rank_details import rank_details

LAUNCHED = """
host  user_annotation  ProfilerStep#1  0  1000
host  cuda_runtime  cudaLaunchKernel  900  10  correlation=1
gpu0  kernel  ncclDevKernel_AllReduce_Sum_f32  920  30  correlation=1  stream=7
"""


def host_times(picture: str) -> dict[str, int]:
    details = rank_details(draw(LAUNCHED + picture))
    (operation,) = details.table()
    pairs = zip(operation["host"].tolist(), operation["host_ns"].tolist(), strict=True)
    return {details.names[code]: time for code, time in pairs if code >= 0}


@pytest.mark.parametrize("around", ["", "host cpu_op outer 0 500"])
def test_a_call_that_begins_before_the_one_before_it_ends_keeps_its_time(around: str) -> None:
    overlapping = """
    host  cpu_op  early  0      100.001
    host  cpu_op  late   100    100
    host  cpu_op  inner  120    30
    """
    outer = {"outer": 300_000} if around else {}
    assert host_times(overlapping + around) == {"early": 100_000, "late": 70_000, "inner": 30_000, **outer}


def test_calls_that_overlap_in_many_lanes_share_the_time_in_which_any_runs() -> None:
    stairs = "\n".join(f"host cpu_op op{at} {10 * at} 100" for at in range(5))
    assert host_times(stairs) == {"op0": 10_000, "op1": 10_000, "op2": 10_000, "op3": 10_000, "op4": 100_000}
