"""Slack of single points and items, by hand; that of simulated programs is in test_simulated.py."""

from __future__ import annotations

from tests.support.traces import draw
from torch_tb_profiler.analyses.critical_path.slack import UNLIMITED_NS, slack
from torch_tb_profiler.model.schedule.schedule import schedule


def test_the_first_point_of_a_trace_has_no_slack_where_another_thread_waits_for_it() -> None:
    """The host waits 103 us for a kernel that a second thread launches once the first has begun."""
    trace = draw("""
    host   user_annotation  ProfilerStep#1           0  300
    host   cpu_op           aten::mm                 0  100
    host2  cuda_runtime     cudaLaunchKernel         5    2  correlation=1
    gpu0   kernel           long                    10  200  correlation=1 stream=7
    host   cuda_runtime     cudaDeviceSynchronize  110  103
    host   cpu_op           aten::mm               250   50
    """)
    assert schedule(trace).edges.point.tolist() == [-1, 0]
    # Only the call of aten::mm beside the launch and its kernel has time to spare, as the host waits for 100 us.
    assert slack(trace).points.tolist() == [0, 100_000, 0, 0, 0, 0]
    assert slack(trace).items.tolist() == [0]


def test_nothing_waits_for_what_runs_beside_the_steps() -> None:
    """A kernel of a stream of its own for which no step waits may end at any time."""
    trace = draw("""
    host  user_annotation  ProfilerStep#1           0  300
    host  cuda_runtime     cudaLaunchKernel         0    2  correlation=1
    gpu0  kernel           long                     4  200  correlation=1 stream=7
    host  cuda_runtime     cudaStreamSynchronize  110   96  stream=7
    host  cpu_op           aten::mm               290   40
    host  cuda_runtime     cudaLaunchKernel       310    2  correlation=2
    gpu0  kernel           late                   314   10  correlation=2 stream=8
    """)
    first, late = slack(trace).items.tolist()
    assert first == 0
    assert late >= UNLIMITED_NS // 2
