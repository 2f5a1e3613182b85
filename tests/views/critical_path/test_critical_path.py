"""The sentences and numbers of the critical path, and what a trace without one says."""

from __future__ import annotations

import pytest

from tests.support.claims import beside_communication
from tests.support.traces import BUSY_HOST, draw
from tests.support.views import ask
from torch_tb_profiler.base.errors import NotFoundError, UsageError
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.views._shared.availability import critical_path_reason as unavailable
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.critical_path.build import build, build_segments, build_what_if
from torch_tb_profiler.views.critical_path.payload import (
    CriticalPathParams,
    CriticalPathPayload,
    PathSegmentsParams,
    PathSummary,
    TargetParams,
    TargetRow,
)
from torch_tb_profiler.views.critical_path.words import explanation

HOST_BOUND = """
host  user_annotation  ProfilerStep#1                                               0  100
host  user_annotation  enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__  0   40
host  cpu_op           aten::mul                                                   50   40
host  cuda_runtime     cudaLaunchKernel                                            60   10  correlation=1
gpu0  kernel           elementwise                                                 74    6  correlation=1
"""

DEVICE_BOUND = """
host  user_annotation  ProfilerStep#1           0  600
host  cpu_op           aten::mm                 0   20
host  cuda_runtime     cudaLaunchKernel         5   10  correlation=1
gpu0  kernel           gemm                    19  481  correlation=1
host  cpu_op           aten::item              30  490
host  cuda_runtime     cudaStreamSynchronize   40  464  correlation=2
"""


def answer(trace: Trace, what_if: str = "") -> CriticalPathPayload:
    assert unavailable(trace) is None
    return build(trace, CriticalPathParams(what_if))


def times(payload: CriticalPathPayload) -> dict[str, int]:
    """Return category -> us on the path."""
    return {category.name: int(category.time_ns) // 1000 for category in payload.path.categories}


@pytest.mark.parametrize("launched", [True, False])
def test_what_looks_like_host_code_may_be_a_wait_for_communication_without_a_launch(launched: bool) -> None:
    payload = answer(beside_communication(launched))
    assert plain(payload.headline).startswith(f"An average step is {'' if launched else 'likely '}host-bound")
    assert ("no path leads through it" not in plain(payload.limits)) == launched


def test_the_path_of_a_host_bound_step_is_the_host_by_what_it_does() -> None:
    payload = answer(draw(HOST_BOUND))
    assert times(payload) == {
        "data_loading": 40,
        "operator": 30,
        "launch_call": 10,
        "unrecorded": 20,
    }
    assert plain(payload.headline) == (
        "The step is host-bound: 100% of its critical path is host code. "
        "Making host code twice as fast would cut the step from 100 µs to 50.0 µs."
    )
    assert plain(payload.explanation) == (
        "Data loading accounts for 40.0 µs of the critical path; removing it would cut the step to 60.0 µs. "
        "Faster kernels wouldn't help."
    )


@pytest.mark.parametrize(
    ("half", "sentence"),
    [
        (80_000, "Kernels twice as fast would save 20.0 µs."),
        (99_501, "Faster kernels wouldn't help."),
        (99_500, "Kernels twice as fast would save 500 ns."),
    ],
)
def test_faster_kernels_help_if_they_save_half_a_percent_of_the_step(half: int, sentence: str) -> None:
    path = PathSummary(100_000, 1, [], [])
    row = TargetRow(
        "device", "device", "All kernels and copies", 90_000, 9, 0, None, [100_000, 90_000, half, 0, 0]
    )
    assert plain(explanation(path, [row], 1.0, True)) == sentence


@pytest.mark.parametrize(("call", "bounded"), [("cudaStreamWaitEvent", False), ("cudaEventRecord", True)])
def test_without_a_recorded_wait_for_communication_what_ifs_are_bounds(call: str, bounded: bool) -> None:
    trace = draw(f"""
    host  cuda_runtime  cudaLaunchKernel        0   2  correlation=1
    host  cuda_runtime  cudaLaunchKernel       10   2  correlation=2
    host  cuda_runtime  {call}                 20   2
    host  cuda_runtime  cudaLaunchKernel       30   2  correlation=3
    gpu0  kernel        ncclDevKernel_1         5  95  correlation=1 stream=20
    gpu0  kernel        gemm                   15  80  correlation=2 stream=7
    gpu0  kernel        gemm                  101  50  correlation=3 stream=7
    """)
    assert answer(trace).path.saves_at_most == bounded
    assert ("would save at most" in plain(answer(trace).explanation)) == bounded
    assert not answer(draw(HOST_BOUND)).path.saves_at_most


def test_the_headline_and_categories_without_a_table_open_the_timeline_with_the_path_highlighted() -> None:
    payload = answer(draw(HOST_BOUND))
    assert [phrase.link for phrase in payload.headline if phrase.link] == ["trace?path=true"]
    links = {category.name: category.link for category in payload.path.categories}
    assert (links["unrecorded"], links["operator"]) == ("trace?path=true", "operators")


def test_the_path_of_a_device_bound_step_goes_through_the_wait() -> None:
    payload = answer(draw(DEVICE_BOUND))
    # Launch to 15, latency to 19, the kernel to 500, the wake-up to 504, the host to 600.
    assert times(payload) == {
        "operator": 21,
        "launch_call": 10,
        "unrecorded": 80,
        "kernel": 481,
        "launch_latency": 4,
        "wake_up": 4,
    }
    assert sum(category.time_ns for category in payload.path.categories) == payload.path.duration_ns == 600_000
    assert plain(payload.headline) == (
        "The step is GPU-bound: 80.2% of its critical path is kernels and copies. "
        "Making them twice as fast would cut the step from 600 µs to 360 µs."
    )


def test_the_groups_of_a_step_sum_to_it() -> None:
    (step,) = answer(draw(DEVICE_BOUND)).steps
    assert (step.name, step.duration_ns) == ("1", 600_000)
    assert (step.host_ns, step.device_ns, step.latency_ns) == (111_000, 481_000, 8_000)


def test_a_trace_without_recorded_steps_is_a_single_one() -> None:
    assert answer(draw(HOST_BOUND)).steps_recorded
    unmarked = answer(draw("host  cpu_op  aten::mul  0  100"))
    assert (len(unmarked.steps), unmarked.steps_recorded) == (1, False)


def test_targets_have_time_on_the_path_calls_slack_and_a_curve() -> None:
    rows = {row.target: row for row in answer(draw(HOST_BOUND)).targets}
    loading, kernel = rows["data_loading"], rows["kernel:elementwise"]
    assert (loading.path_ns, loading.calls, loading.slack_ns) == (40_000, 1, 0)
    assert loading.step_ns == [100_000, 90_000, 80_000, 70_000, 60_000]
    assert (kernel.path_ns, kernel.slack_ns) == (0, 20_000)  # it ends at 80 us of 100
    assert kernel.step_ns == [100_000] * 5
    assert rows["operator:aten::mul"].path_ns == 40_000  # with the launch inside
    assert rows["call:cudaLaunchKernel"].path_ns == 10_000


def test_targets_have_the_same_times_in_whatever_order_the_file_has_their_calls() -> None:
    lines = [*HOST_BOUND.strip().splitlines(), "host cpu_op aten::mul 92 3", "host cpu_op aten::mul 96 2"]
    forwards, backwards = (answer(draw("\n".join(order))).targets for order in (lines, lines[::-1]))
    assert {row.target: (row.path_ns, row.calls, row.step_ns) for row in forwards} == {
        row.target: (row.path_ns, row.calls, row.step_ns) for row in backwards
    }
    assert next(row for row in forwards if row.target == "operator:aten::mul").path_ns == 45_000


def test_a_removed_wait_is_named_after_its_operator() -> None:
    rows = {row.target: row for row in answer(draw(DEVICE_BOUND)).targets}
    # The host goes on after 3 us of the call, and the step still ends no sooner than its kernel.
    assert rows["sync:aten::item"].step_ns == [600_000] * 4 + [500_000]


def test_a_requested_change_is_estimated() -> None:
    changed = answer(draw(HOST_BOUND), "operator:aten::mul:50").what_if[-1]
    assert (changed.target, changed.percent, changed.step_ns) == ("operator:aten::mul", 50, 80_000)
    row = build_what_if(draw(HOST_BOUND), TargetParams("operator:aten::mul"))
    assert row.step_ns == [100_000, 90_000, 80_000, 70_000, 60_000]


@pytest.mark.parametrize("what_if", ["aten::mul", "operator:aten::mul:200", "50", "operator:aten::mul:-1"])
def test_a_change_without_a_valid_percent_is_an_error(what_if: str) -> None:
    with pytest.raises(UsageError, match="what_if"):
        answer(draw(HOST_BOUND), what_if)


def test_hours_of_one_operator_do_not_overflow() -> None:
    hours = 3 * 3600 * 10**6
    payload = answer(draw(f"host cpu_op aten::mm 0 {hours}"), "operator:aten::mm:50")
    assert payload.what_if[-1].step_ns == hours * 1000 // 2


def test_an_unknown_target_is_an_error() -> None:
    with pytest.raises(UsageError, match="not a what-if target"):
        answer(draw(HOST_BOUND), "weather:50")
    with pytest.raises(NotFoundError, match="no 'operator:aten::nothing'"):
        answer(draw(HOST_BOUND), "operator:aten::nothing:50")


def test_segments_are_the_path_in_order_a_page_at_a_time() -> None:
    trace = draw(DEVICE_BOUND)
    segments = build_segments(trace, PathSegmentsParams())
    ends = [begin + lasting for begin, lasting in zip(segments.begin_ns, segments.duration_ns, strict=True)]
    assert segments.begin_ns[0] == 0
    assert ends[:-1] == segments.begin_ns[1:]
    assert ends[-1] == 600_000
    kernel = segments.category.index("kernel")
    row = segments.event[kernel]
    assert row is not None
    assert trace.strings[trace.events.name[row]] == "gemm"
    page = build_segments(trace, PathSegmentsParams(first=kernel, limit=1))
    assert (page.category, page.total) == (["kernel"], len(segments.category))
    with pytest.raises(NotFoundError, match="step '9'"):
        build_segments(trace, PathSegmentsParams(step="9"))


def test_a_trace_without_a_host_or_launches_says_what_it_lacks() -> None:
    assert "host is not recorded" in str(unavailable(draw("gpu0 kernel a 0 10")))
    unlinked = "host cpu_op aten::mm 0 10\ngpu0 kernel a 5 10"
    assert "no runtime call is recorded" in str(unavailable(draw(unlinked)))
    launched = f"{unlinked}\nhost cuda_runtime launch 1 2"
    assert unavailable(draw(launched)) == (
        "the recording doesn't link the device work to the calls that launched it"
    )


def test_a_trace_of_the_host_alone_says_that_the_path_is_its_main_thread() -> None:
    payload = answer(draw("host cpu_op aten::mm 0 10"))
    assert payload.explained is None
    assert "no device work" in plain(payload.reasons["explained"])
    assert plain(payload.headline) == (
        "aten::mm is 100% of the critical path. Removing it would cut the trace from 10.0 µs to 0 ns."
    )
    assert plain(payload.explanation) == (
        "Only the host was recorded, so this path follows its main thread. "
        "Waits on other threads or processes aren't recorded."
    )


def test_a_host_alone_without_a_part_to_name_is_host_bound() -> None:
    payload = answer(draw("host user_annotation ProfilerStep#1 0 100"))
    assert "The step is host-bound: 100% of its critical path is host code." in plain(payload.headline)


def test_an_annotation_that_ends_in_a_frame_of_python_is_a_target() -> None:
    rows = answer(
        draw("""
    host  user_annotation  ProfilerStep#1                            0  100
    host  python_function  torch/autograd/profiler.py(1):~__enter__  10   8
    host  user_annotation  tokenize                                 15   60
    host  python_function  train.py(7):~tokenize                    20   50
    host  python_function  torch/autograd/profiler.py(2):~__exit__  72    8
    """)
    ).targets
    (found,) = (row for row in rows if row.target == "operator:tokenize")
    assert (found.path_ns, found.step_ns) == (60_000, [100_000, 85_000, 70_000, 55_000, 40_000])


def test_waiting_in_locks_queues_and_sleeps_is_a_target() -> None:
    payload = answer(
        draw("""
    host  user_annotation  ProfilerStep#1                  0  100
    host  python_function  train.py(7):~wait              10   70
    host  python_function  <built-in~function~sleep>      20   50
    """)
    )
    assert plain(payload.headline) == (
        "Waiting in locks, queues and sleeps is 50% of the critical path. "
        "Removing it would cut the step from 100 µs to 50.0 µs."
    )


def test_modules_are_targets_however_many_frames_take_longer() -> None:
    frames = "\n".join(f"host python_function train.py({at}):~f {at} {90 - 2 * at}" for at in range(30))
    module = "host python_function nn.Module:~A_0 30 9"
    rows = answer(draw(f"host user_annotation ProfilerStep#1 0 100\n{frames}\n{module}")).targets
    assert [row.target for row in rows if row.kind == "module"] == ["module:A_0"]


def test_a_target_opens_the_call_that_takes_most_of_the_path() -> None:
    trace = draw(BUSY_HOST)
    events = {row.target: row.event for row in answer(trace).targets}
    start = {target: int(trace.events.start[row]) // 1000 for target, row in events.items() if row is not None}
    assert start["operator:aten::mul"] == 540  # not 44: that call is not on the path
    assert start["kernel:gemm"] == 220  # the longer one
    assert start["operator:aten::mm"] == 0  # the launch that the path begins with
    assert start["sync:aten::item"] == 52
    assert events["host"] is None


def test_a_module_opens_with_the_frames_unfolded() -> None:
    trace = draw("""
    host  user_annotation  ProfilerStep#1       0  100
    host  python_function  nn.Module:~Net_0     5   90
    """)
    links = [phrase.link for phrase in answer(trace).headline if phrase.link]
    assert links == ["trace?event=1&python=true"]


def test_events_without_a_name_are_no_target() -> None:
    """Damaged files have them."""
    base = {"ph": "X", "ts": 20, "dur": 10, "args": {"correlation": 1, "device": 0, "stream": 7}}
    nameless = [
        {**base, "cat": "cpu_op", "pid": 1, "tid": 1},
        {**base, "cat": "cuda_runtime", "pid": 1, "tid": 1, "ts": 22, "dur": 2},
        {**base, "cat": "kernel", "pid": 0, "tid": 7, "ts": 30},
    ]
    payload = build(draw(HOST_BOUND, *nameless), CriticalPathParams())
    assert {row.target for row in payload.targets} >= {"operator:aten::mul"}
    assert all(row.target.partition(":")[2] for row in payload.targets if ":" in row.target)


def test_the_segments_of_one_step_lie_within_it() -> None:
    trace = draw(
        "\n".join(
            f"host user_annotation ProfilerStep#{i} {100 * i} 100\n"
            f"host cuda_runtime cudaLaunchKernel {100 * i + 10} 10 correlation={i}\n"
            f"gpu0 kernel gemm {100 * i + 30} 50 correlation={i} stream=7"
            for i in (1, 2, 3)
        )
    )
    segments = ask(trace, "critical_path/pieces", step="2")
    begins, durations = segments["begin_ns"], segments["duration_ns"]
    assert 0 < len(begins) < len(ask(trace, "critical_path/pieces")["begin_ns"])
    first = begins[0]
    assert all(first <= begin < first + 100_000 for begin in begins) and sum(durations) == 100_000
