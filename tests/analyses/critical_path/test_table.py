"""Rows of the table of the critical path: what their slack says."""

from __future__ import annotations

from tests.support.traces import draw
from torch_tb_profiler.analyses.critical_path.candidates import find_candidate
from torch_tb_profiler.analyses.critical_path.slack import slack
from torch_tb_profiler.model.schedule.schedule import schedule


def test_the_slack_of_a_target_is_that_of_half_of_its_calls() -> None:
    """Three kernels beside a long one, on a stream of their own: the last has least slack."""
    trace = draw("""
    host  user_annotation  ProfilerStep#1           0  300
    host  cuda_runtime     cudaLaunchKernel         0    2  correlation=1
    gpu0  kernel           long                     4  200  correlation=1 stream=7
    host  cuda_runtime     cudaLaunchKernel         5    2  correlation=2
    gpu0  kernel           short                    9   10  correlation=2 stream=8
    host  cuda_runtime     cudaLaunchKernel        50    2  correlation=3
    gpu0  kernel           short                   54   10  correlation=3 stream=8
    host  cuda_runtime     cudaLaunchKernel       100    2  correlation=4
    gpu0  kernel           short                  104   10  correlation=4 stream=8
    host  cuda_runtime     cudaDeviceSynchronize  110   96
    """)
    work = schedule(trace).items
    names = [trace.strings[code] for code in trace.events.name[work.row]]
    each = sorted(room for name, room in zip(names, slack(trace).items.tolist(), strict=True) if name == "short")
    assert len(set(each)) == 3
    assert find_candidate(trace, "kernel:short").slack_ns == each[1]
