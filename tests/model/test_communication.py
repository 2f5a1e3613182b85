"""Whose host time is communication: that of back ends of the host; of others only where no kernel is recorded."""

from __future__ import annotations

import pytest

from tests.support.traces import draw
from torch_tb_profiler.analyses.shared.breakdown import breakdown
from torch_tb_profiler.model.communication.events import host_communication

KERNEL = """
host   cpu_op           record_param_comms   0  50  Collective name=allreduce
host   user_annotation  nccl:all_reduce      5  40
host   cuda_runtime     cudaLaunchKernel    30  10  correlation=7
gpu0   kernel           ncclDevKernel_AllReduce_Sum_f32_RING_LL 50 500 correlation=7 stream=20
"""


def hosts(picture: str) -> list[str]:
    trace = draw(picture)
    return [trace.strings[code] for code in trace.events.name[host_communication(trace)].tolist()]


@pytest.mark.parametrize(
    "call",
    [
        "host cpu_op record_param_comms 600 30 Collective~name=wait",
        "host cpu_op record_param_comms 600 30 Collective~name=init",
        "host cpu_op record_param_comms 600 30",
        "host cpu_op record_param_comms 600 30 Collective~name=allreduce",
        "host cpu_op c10d::allreduce_ 600 30",
        "host user_annotation nccl:all_reduce 600 30",
    ],
)
def test_a_call_without_a_kernel_is_no_communication_where_kernels_are_recorded(call: str) -> None:
    call = call.replace("Collective~name", "Collective name")
    assert hosts(KERNEL + call) == []
    trace = draw(KERNEL + call)
    assert breakdown(trace).times["communication"].sum() == 500_000
    assert len(hosts(call)) == 1  # nothing else shows the communication


def test_what_encloses_nothing_that_was_launched_is_no_communication_either() -> None:
    """The metadata is recorded before the launch, beside it."""
    assert hosts(KERNEL.replace("record_param_comms   0  50", "record_param_comms   0   3")) == []


def test_back_ends_of_the_host_count_beside_kernels() -> None:
    gloo = """
    host   cpu_op           c10d::send          600  20
    host   user_annotation  gloo:send           610  90
    host   cpu_op           c10d::allreduce_    800  20
    host2  user_annotation  gloo:all_reduce     810  90
    """
    assert hosts(KERNEL + gloo) == ["c10d::send", "gloo:send", "gloo:all_reduce"]
    assert breakdown(draw(KERNEL + gloo)).times["communication"].sum() == 500_000 + 100_000 + 90_000
