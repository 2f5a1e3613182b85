"""Which steps there are, how far each reaches, and which of them is whole."""

from __future__ import annotations

import pytest

from tests.support.traces import draw
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import Trace

DAY_US = 24 * 3600 * 1_000_000


def draw_launches(*counts: tuple[int, int]) -> Trace:
    """Return a step of 100 us per pair: so many launches of kernels, of which the first so many have theirs."""
    lines = []
    for step, (launches, kernels) in enumerate(counts):
        begin = 100 * step
        lines.append(f"host user_annotation ProfilerStep#{step} {begin} 100")
        for i in range(launches):
            number, start = 100 * step + i + 1, begin + 2 * i
            lines.append(f"host cuda_runtime cudaLaunchKernel {start} 1 correlation={number}")
            if i < kernels:
                lines.append(f"gpu0 kernel k {start + 1} 1 correlation={number} stream=7")
    return draw("\n".join(lines))


@pytest.mark.parametrize(
    ("counts", "complete"),
    [
        (((20, 20), (3, 3)), [True, True]),  # light but whole
        (((20, 20), (20, 19)), [True, True]),  # one record of twenty may be lost
        (((20, 20), (20, 18)), [True, False]),  # the profiler stopped before the device was done
        (((20, 18), (20, 18)), [True, True]),  # as many lack in the step before, so that is not the end's doing
        (((20, 10), (20, 20), (20, 10)), [True, True, False]),  # measured by the step before, not by the first
        (((10, 10), (10, 3), (10, 10)), [True, True, True]),  # only a last step can be cut off
        (((0, 0), (0, 0)), [True, True]),  # without a device nothing can be missing
        (((4, 4), (0, 0), (0, 0)), [True, False, False]),
        (((20, 4), (20, 0), (20, 0)), [False, False, False]),  # the device's recording ends within the first step
        (((20, 4), (0, 0), (0, 0)), [True, False, False]),  # nothing shows that any work is lost
        (((3, 1),), [True]),
        (((4, 4), (1, 0), (4, 4)), [True, False, True]),  # all of its work is lost, though others come after it
        (((4, 4), (0, 0), (4, 4)), [True, True, True]),  # it launches nothing
    ],
)
def test_a_last_step_without_the_kernels_of_its_launches_is_incomplete(
    counts: tuple[tuple[int, int], ...], complete: list[bool]
) -> None:
    assert steps(draw_launches(*counts)).complete.tolist() == complete


def test_calls_that_launch_no_kernel_make_no_step_incomplete() -> None:
    """A memset or a synchronization may have no work on the device."""
    trace = draw("""
    host  user_annotation  ProfilerStep#1           0  100
    host  cuda_runtime     cudaLaunchKernel        10    5  correlation=1
    host  user_annotation  ProfilerStep#2         100  100
    host  cuda_runtime     cudaLaunchKernel       110    5  correlation=2
    host  cuda_runtime     cudaMemsetAsync        120    5  correlation=3
    host  cuda_runtime     cudaDeviceSynchronize  130    5  correlation=4
    gpu0  kernel           k                       20    5  correlation=1 stream=7
    gpu0  kernel           k                      120    5  correlation=2 stream=7
    """)
    assert steps(trace).complete.tolist() == [True, True]


def test_a_step_whose_only_kernel_was_lost_is_incomplete_after_an_earlier_kernel() -> None:
    picture = """
    host  cuda_runtime     cudaLaunchKernel         0    5  correlation=1
    host  user_annotation  ProfilerStep#1         100  100
    host  cuda_runtime     cudaLaunchKernel       110    5  correlation=2
    gpu0  kernel           k                       20    5  correlation=1 stream=7
    """
    assert steps(draw(picture)).complete.tolist() == [False]
    without_launch = "gpu0  kernel  k  150  5  stream=7"  # it may be the work of this step
    assert steps(draw(f"{picture}{without_launch}")).complete.tolist() == [True]


def test_a_step_inside_a_step_is_ignored() -> None:
    """Two profilers mark one loop on one thread: the outer marks count, also where the inner begin with them."""
    trace = draw("""
    host   user_annotation  ProfilerStep#1    0  100
    host   user_annotation  ProfilerStep#8    0   90
    host   user_annotation  ProfilerStep#2  100  100
    host   user_annotation  ProfilerStep#9  105   95
    host2  user_annotation  ProfilerStep#3    0   10
    host2  user_annotation  ProfilerStep#4   10   10
    host2  user_annotation  ProfilerStep#5   20   10
    """)
    assert steps(trace).names == ("3", "4", "5")  # the thread with the most of what counts
    alone = draw("""
    host   user_annotation  ProfilerStep#1    0  100
    host   user_annotation  ProfilerStep#1    0  100
    host   user_annotation  ProfilerStep#2  100  100
    host   user_annotation  ProfilerStep#2  105   95
    """)
    assert steps(alone).names == ("1", "2")
    assert steps(alone).host_ends.tolist() == [100_000, 200_000]


def test_steps_of_a_second_profiler_do_not_count() -> None:
    """The thread with the most steps has them; the copies on another one would count time twice."""
    trace = draw("""
    host2  user_annotation  ProfilerStep#7   10  100
    host   user_annotation  ProfilerStep#1    0  100
    host   user_annotation  ProfilerStep#2  100  100
    """)
    assert steps(trace).names == ("1", "2")
    assert steps(trace).host_starts.tolist() == [0, 100_000]


def test_a_launch_on_the_edge_belongs_to_the_step_that_contains_it() -> None:
    """One that ends with a step is in it, one that begins with a step is in that one, one across is in none."""
    trace = draw("""
    host  user_annotation  ProfilerStep#1    0  100
    host  user_annotation  ProfilerStep#2  100  100
    host  cuda_runtime     ends_with_1      90   10  correlation=1
    host  cuda_runtime     begins_with_2   100   10  correlation=2
    host  cuda_runtime     across          195   10  correlation=3
    gpu0  kernel           a               110   20  correlation=1 stream=7
    gpu0  kernel           b               210   30  correlation=2 stream=7
    gpu0  kernel           c               300  100  correlation=3 stream=7
    """)
    assert steps(trace).ends.tolist() == [130_000, 240_000]


def test_device_work_from_before_the_first_step_delays_it() -> None:
    """Only what ends before the step's own device work: the rest runs beside it."""
    trace = draw("""
    host  cuda_runtime     warm_up           0    5  correlation=1
    host  user_annotation  ProfilerStep#1   10   90
    host  cuda_runtime     launch           20    5  correlation=2
    gpu0  kernel           before           10   30  correlation=1 stream=7
    gpu0  kernel           own              50   10  correlation=2 stream=7
    gpu1  kernel           beside           20   90  stream=9
    """)
    assert steps(trace).starts.tolist() == [40_000]
    assert steps(trace).host_starts.tolist() == [10_000]


@pytest.mark.parametrize(
    ("arguments", "start"),
    [
        ("", 0),  # nothing says when it was launched
        ("correlation=9", 0),  # after the first recorded call, so its own call was lost
        ("correlation=3", 80_000),  # before every recorded call: before the recording began
    ],
)
def test_work_without_a_launch_delays_the_first_step_only_if_it_was_launched_before(
    arguments: str, start: int
) -> None:
    trace = draw(f"""
    host  user_annotation  ProfilerStep#1    0  100
    host  cuda_runtime     cudaLaunchKernel 20    5  correlation=5
    gpu0  kernel           unlinked         30   50  {arguments} stream=7
    gpu0  kernel           own              85   10  correlation=5 stream=7
    """)
    assert steps(trace).starts.tolist() == [start]


@pytest.mark.parametrize(
    ("absurd", "end"),
    [
        (f"host cpu_op late {8 * DAY_US} 10", 30_000),  # a week after the start
        (f"host cpu_op endless 20 {15 * DAY_US}", 30_000),  # for two weeks
        (f"host cpu_op late {6 * DAY_US} 10", (6 * DAY_US + 10) * 1000),
        (f"host cpu_op long 20 {13 * DAY_US}", (13 * DAY_US + 20) * 1000),
    ],
)
def test_the_trace_as_one_step_ends_at_the_last_plausible_time(absurd: str, end: int) -> None:
    found = steps(draw(f"host cpu_op first 0 10\nhost cpu_op last 20 10\n{absurd}"))
    assert (found.names, found.recorded) == (("all",), False)
    assert (found.starts.tolist(), found.ends.tolist()) == ([0], [end])
    assert found.host_ends.tolist() == [end]


def test_events_of_other_phases_do_not_extend_the_trace_as_one_step() -> None:
    """Instants, names and counters have no extent, and the profiler's own span reaches beyond what it recorded."""
    instant = {"ph": "i", "name": "mark", "pid": 1, "tid": 1, "ts": 90, "s": "t"}
    assert steps(draw("host cpu_op a 0 10\nhost Trace span 0 500", instant)).ends.tolist() == [10_000]
    assert steps(draw("", instant)).names == ()
