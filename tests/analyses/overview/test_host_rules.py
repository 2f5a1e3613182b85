"""Advice about the host: each rule where it applies, where it does not, and where it nearly does."""

from __future__ import annotations

import pytest

from tests.analyses.overview.advice_traces import get_advice, ids, measure_share, share, steps, work
from tests.support.serving import Workload, serve
from tests.support.traces import draw
from torch_tb_profiler.analyses.overview.advice import advice
from torch_tb_profiler.analyses.overview.finding import MIN_GAIN_SHARE

STEP = steps(1)
END = work(9_000, 1_000, 8_900, 99)
"""Work at the end of the step, launched shortly before it runs."""

LOADER = "host user_annotation enumerate(DataLoader)#_{kind}DataLoaderIter.__next__ 0 {wait}"


@pytest.mark.parametrize(("gap", "found"), [(10, True), (0, False)])
def test_short_steps_are_launch_bound_by_a_launch_each(gap: int, found: bool) -> None:
    """Twenty steps of 50 us with a single kernel, which the device waits for, or has queued."""
    lines = []
    for step in range(20):
        at = 50 * step
        lines += [
            f"host user_annotation ProfilerStep#{step} {at} 50",
            f"host cuda_runtime cudaLaunchKernel {at + 20} 5 correlation={step + 1}",
            f"gpu0 kernel relu {at + 27} {50 - gap} correlation={step + 1} stream=7",
        ]
    assert (get_advice(draw("\n".join(lines)), "launch_bound") is not None) == found


# ---- data loading ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("wait", "gives"), [(200, True), (199, False)])
def test_advice_is_worth_a_fiftieth_of_the_step(wait: int, gives: bool) -> None:
    assert MIN_GAIN_SHARE == 0.02
    trace = draw(f"{STEP}\n{work(300, 9_700, 250, 1)}\n{LOADER.format(kind='SingleProcess', wait=wait)}")
    assert share(trace, "data_loading") == (0.02 if gives else None)


@pytest.mark.parametrize(
    ("kind", "case"), [("SingleProcess", "process"), ("MultiProcessing", "same_cpu"), ("Other", "process")]
)
def test_workers_are_not_advised_where_there_are_workers(kind: str, case: str) -> None:
    found = get_advice(draw(f"{STEP}\n{LOADER.format(kind=kind, wait=4_000)}"), "data_loading")
    assert found is not None and found.finding.case == case


def test_loading_behind_work_of_the_device_costs_nothing() -> None:
    trace = draw(f"{STEP}\n{work(100, 9_900, 50, 1)}\n{LOADER.format(kind='SingleProcess', wait=4_000)}")
    assert get_advice(trace, "data_loading") is None


def test_steps_that_were_cut_off_do_not_count() -> None:
    trace = draw(f"""
    {steps(2)}
    {work(100, 9_000, 50, 1)}
    {LOADER.format(kind="SingleProcess", wait=9_000).replace(" 0 ", " 10000 ")}
    """)
    assert get_advice(trace, "data_loading") is None


# ---- calls that start something up ----------------------------------------------------------------------


def call(name: str, start: int, duration: int) -> str:
    return f"host cuda_runtime {name} {start} {duration}"


@pytest.mark.parametrize(
    "name",
    ["cudaFree", "hipFree", "cudaMalloc", "cudaStreamCreateWithFlags", "cuModuleLoadData", "cudaLaunchKernel"],
)
def test_a_slow_call_of_one_step_is_start_up(name: str) -> None:
    trace = draw(f"{STEP}\n{work(10, 10, 2, 1)}\n{work(40, 10, 35, 2)}\n{call(name, 100, 8_000)}\n{END}")
    found = get_advice(trace, "start_up")
    assert found is not None and found.finding.subject == name
    assert measure_share(found) == pytest.approx(0.8)
    assert ids(trace)[0] == "start_up"
    assert "launch_bound" not in ids(trace)


@pytest.mark.parametrize(
    ("name", "duration"),
    [
        ("cudaFree", 999),  # faster than a millisecond
        ("cudaDeviceSynchronize", 8_000),  # a wait
        ("cudaMemcpyAsync", 8_000),  # a copy
        ("gif_merge", 8_000),  # of another vendor
    ],
)
def test_other_calls_start_nothing_up(name: str, duration: int) -> None:
    trace = draw(f"{STEP}\n{work(10, 10, 2, 1)}\n{call(name, 100, duration)}\n{END}")
    assert get_advice(trace, "start_up") is None


def test_a_launch_as_long_as_the_others_starts_nothing_up() -> None:
    """The queue is full, or the host is that slow: nothing that later steps would not pay."""
    launches = "\n".join(work(1_500 * i + 1_400, 50, 1_500 * i, i + 1, call=1_200) for i in range(6))
    assert get_advice(draw(f"{STEP}\n{launches}"), "start_up") is None


@pytest.mark.parametrize(("duration", "gives"), [(2_000, False), (2_001, True)])
def test_a_launch_of_more_than_twenty_times_the_median_starts_something_up(duration: int, gives: bool) -> None:
    launches = "\n".join(work(200 * i + 150, 40, 200 * i, i + 1, call=100) for i in range(5))
    trace = draw(f"{STEP}\n{launches}\n{call('cudaLaunchKernel', 2_000, duration)}\n{END}")
    assert (get_advice(trace, "start_up") is not None) == gives


def test_a_slow_call_behind_work_of_the_device_costs_nothing() -> None:
    trace = draw(f"{STEP}\n{work(10, 9_900, 2, 1)}\n{call('cudaFree', 100, 8_000)}")
    assert get_advice(trace, "start_up") is None


def test_slow_calls_of_most_steps_are_no_start_up() -> None:
    calls = "\n".join(
        f"{call('cudaStreamCreate', at + 100, 5_000)}\n{work(at + 9_000, 900, at + 8_900, at + 1)}"
        for at in range(0, 40_000, 10_000)
    )
    assert get_advice(draw(f"{steps(4)}\n{calls}"), "start_up") is None


# ---- the allocator --------------------------------------------------------------------------------------


def draw_allocation(which: tuple[int, ...], count: int = 4, duration: int = 900) -> str:
    lines = [steps(count)]
    for i in range(count):
        at = 10_000 * i
        lines.append(work(at + 9_000, 900, at + 8_900, i + 1))
        if i in which:
            lines += [call("cudaMalloc", at + 100, duration), call("cudaFree", at + 1_100, duration)]
    return "\n".join(lines)


def test_allocations_in_most_steps_are_the_allocator() -> None:
    found = get_advice(draw(draw_allocation((0, 1, 2))), "allocator")
    assert found is not None and found.finding.value == 6
    assert measure_share(found) == pytest.approx(6 * 900 / 40_000)


@pytest.mark.parametrize("which", [(0,), (0, 1)])
def test_a_pool_that_fills_in_the_first_steps_is_not(which: tuple[int, ...]) -> None:
    assert get_advice(draw(draw_allocation(which)), "allocator") is None


def test_two_steps_do_not_tell_what_recurs() -> None:
    assert get_advice(draw(draw_allocation((0, 1), count=2, duration=1_000)), "allocator") is None
    assert get_advice(draw(draw_allocation((0, 1), count=2, duration=1_000)), "start_up") is not None


def test_memory_from_the_pool_of_the_driver_is_not_asked_for_anew() -> None:
    trace = draw(
        draw_allocation((0, 1, 2)).replace("cudaMalloc", "cudaMallocAsync").replace("cudaFree", "cudaFreeAsync")
    )
    assert get_advice(trace, "allocator") is None


# ---- synchronization ------------------------------------------------------------------------------------

WAIT = """
host  cpu_op           aten::item             1000  4010
host  cuda_runtime     cudaStreamSynchronize  1005  {wait}
host  python_function  train.py(9):~step         0 10000
"""


def test_a_gap_after_a_wait_is_caused_by_it() -> None:
    trace = draw(f"{STEP}\n{work(10, 4_990, 5, 1)}\n{WAIT.format(wait=4_000)}\n{work(6_000, 4_000, 5_990, 2)}")
    found = get_advice(trace, "synchronization")
    assert found is not None
    assert (found.finding.subject, found.finding.place) == ("aten::item", "train.py(9): step")
    assert measure_share(found) == pytest.approx((5_995 - 5_000) / 10_000)


def test_a_gap_is_no_longer_than_the_wait_that_caused_it() -> None:
    """The host waited for 300 us: had it not, it would have been ahead by 300 us and no more."""
    trace = draw(
        f"{STEP}\n{work(10, 4_990, 5, 1)}\nhost cuda_runtime cudaStreamSynchronize 4700 305\n"
        f"{work(9_000, 1_000, 8_990, 2)}"
    )
    assert share(trace, "synchronization") == 0.03


@pytest.mark.parametrize(
    "picture",
    [
        # the device had finished before the call
        f"{work(10, 990, 5, 1)}\n{WAIT.format(wait=4_000)}\n{work(6_000, 4_000, 5_990, 2)}",
        # what follows had been launched
        f"{work(10, 4_990, 2, 1)}\n{WAIT.format(wait=4_000)}\n{work(6_000, 4_000, 500, 2)}",
        # nothing follows
        f"{work(10, 9_990, 5, 1)}\nhost cuda_runtime cudaDeviceSynchronize 500 9500",
    ],
)
def test_other_waits_cost_nothing(picture: str) -> None:
    assert get_advice(draw(f"{STEP}\n{picture}"), "synchronization") is None


# ---- what else the host does ----------------------------------------------------------------------------


def test_the_deepest_frame_that_covers_half_of_a_wait_is_named() -> None:
    trace = draw(f"""
    {STEP}
    {work(10, 10, 2, 1)}
    host  python_function  train.py(3):~main           0 10000
    host  python_function  train.py(9):~preprocess   100  8000
    host  python_function  train.py(12):~resize      100  3000
    host  python_function  <built-in~method~sort>    100  8000
    {END}
    """)
    found = get_advice(trace, "host_code")
    assert found is not None
    assert (found.finding.subject, found.finding.case) == ("train.py(9): preprocess", "code")
    assert measure_share(found) == pytest.approx(8_000 / 10_000)  # not what passes before and after it


def test_code_after_a_wait_idles_the_device_for_as_long_as_it_takes() -> None:
    """The wait of 3 ms is advised on by itself; that doesn't shorten the time in which the host throttles."""
    trace = draw(f"""
    {STEP}
    {work(10, 3_990, 5, 1)}
    host  cuda_runtime     cudaStreamSynchronize    1000  3005
    host  python_function  train.py(9):~throttle    4010  4000
    {work(8_020, 1_980, 8_015, 2)}
    """)
    waits, code = get_advice(trace, "synchronization"), get_advice(trace, "host_code")
    assert waits is not None and code is not None and code.gain is not None
    assert code.finding.subject == "train.py(9): throttle"
    assert code.gain.measured_ns == 4_000_000


@pytest.mark.parametrize(
    ("line", "case"),
    [
        ("host cpu_op aten::sort 100 8000", "operator"),
        ("host user_annotation prepare 100 8000", "code"),
        ("host cuda_runtime hipMemset 100 8000", "call"),
        ("host2 cpu_op aten::sort 100 8000", None),  # another thread, which launches nothing
        ("host cpu_op aten::sort 100 4000", None),  # less than half
        ("host user_annotation ProfilerStep#0 100 8000", None),
    ],
)
def test_what_covers_half_of_a_wait_and_what_does_not(line: str, case: str | None) -> None:
    found = get_advice(draw(f"{STEP}\n{work(10, 10, 2, 1)}\n{line}\n{END}"), "host_code")
    assert (found.finding.case if found else None) == case


def draw_launch(gap: int, launch_ahead: int = 0, count: int = 30) -> str:
    """Return kernels of 100 us, with gaps; each is launched as it begins, or so much ahead."""
    every = 100 + gap
    return "\n".join(
        work(every * (i + 1), 100, max(0, every * (i + 1) - 6 - launch_ahead), i + 1) for i in range(count)
    )


def test_many_short_waits_for_launches() -> None:
    trace = draw(f"{STEP}\n{draw_launch(gap=200)}")
    found = get_advice(trace, "launch_bound")
    assert found is not None and found.finding.value == 100_000
    assert measure_share(found) == pytest.approx((29 * 199 + 299) / 10_000)


def test_twenty_launches_can_bound_a_step() -> None:
    assert get_advice(draw(f"{STEP}\n{draw_launch(gap=200, count=20)}"), "launch_bound") is not None


@pytest.mark.parametrize(
    "picture",
    [
        draw_launch(gap=200, launch_ahead=310),  # launched before the gap: the device is what is slow
        draw_launch(gap=200, count=19),  # too few to bound a step
        draw_launch(gap=6, launch_ahead=50),  # gaps that a queue has, too
        draw_launch(gap=200) + "\nhost cuda_runtime cudaGraphLaunch 9990 5",  # graphs are replayed already
    ],
)
def test_other_gaps_are_not_for_launches(picture: str) -> None:
    assert get_advice(draw(f"{STEP}\n{picture}"), "launch_bound") is None


def draw_hooks(count: int, hook: str = "host cpu_op my_hook", length: int = 190) -> str:
    """Draw `count` of these in the gaps of 200 us before the kernels of `draw_launch`, until their launch."""
    return "\n".join(f"{hook} {300 * i + 101} {length}" for i in range(count))


@pytest.mark.parametrize("hook", ["cpu_op my_hook", "python_function train.py(3):hook", "user_annotation my_hook"])
def test_code_that_launches_nothing_is_no_launch_overhead(hook: str) -> None:
    """The gaps are of the code, which no graph of the kernels replays; launches cost the time after it."""
    trace = draw(f"{STEP}\n{draw_launch(gap=200)}\n{draw_hooks(30, f'host {hook}')}")
    found = get_advice(trace, "short_code")
    assert found is not None and (found.finding.subject, found.finding.value) == (hook.split(" ")[1], 190_000)
    assert measure_share(found) == pytest.approx(30 * 190 / 10_000)
    others = get_advice(trace, "launch_bound")
    assert others is None or measure_share(others) <= 1 - 0.3 - 30 * 190 / 10_000


@pytest.mark.parametrize(
    "picture",
    [
        draw_hooks(14),  # most gaps pass elsewhere
        draw_hooks(30, length=195),  # it launches the kernel
        draw_hooks(29) + "\nhost cpu_op my_hook 8801 195",  # one call of it launches a kernel
        draw_hooks(30, length=98),  # as short as launches of small operators
        draw_hooks(30, "host2 cpu_op my_hook"),  # a thread that launches nothing at all
        "\n".join(f"host cuda_runtime cudaEventQuery {300 * i + 101} 190" for i in range(30)),  # not code
    ],
)
def test_other_gaps_are_launch_overhead(picture: str) -> None:
    trace = draw(f"{STEP}\n{draw_launch(gap=200)}\n{picture}")
    found = get_advice(trace, "launch_bound")
    assert found is not None and measure_share(found) == pytest.approx((29 * 199 + 299) / 10_000)
    assert get_advice(trace, "short_code") is None


def test_a_call_that_waits_for_another_thread_is_no_code_that_holds_up_its_launches() -> None:
    """A backward pass: one thread launches it, while the main thread, which launches the rest, waits."""
    backward = draw_launch(gap=200).replace("host ", "host2 ")
    main = "host python_function torch/autograd/graph.py(860):_engine_run_backward 20 9500\n" + work(
        9_700, 9, 9_600, 99
    )
    trace = draw(f"{STEP}\n{main}\n{backward}")
    assert get_advice(trace, "short_code") is None
    found = get_advice(trace, "launch_bound")
    assert found is not None and measure_share(found) > 0.55


def test_an_instant_counts_for_one_rule_alone() -> None:
    trace = draw(f"{STEP}\n{draw_launch(gap=200)}\n{LOADER.format(kind='SingleProcess', wait=5_000)}")
    gains = [measure_share(each) for each in advice(trace)]
    assert ids(trace) == ["data_loading", "launch_bound"] and sum(gains) == pytest.approx(0.607, abs=0.003)


# ---- copies ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kernel", "gain"),
    [
        ("Memcpy~HtoD~(Pageable~->~Device)", 5_000, 0.1),
        ("Memcpy~HtoD~(Pinned~->~Device)", 5_000, None),
        ("Memcpy~DtoH~(Device~->~Pageable)", 5_000, None),
        ("Memcpy~HtoD~(Pageable~->~Device)", 1_000, None),  # a kernel hides it
    ],
)
def test_pageable_copies_to_the_device_that_nothing_hides(name: str, kernel: int, gain: float | None) -> None:
    copy = (
        "host cuda_runtime cudaMemcpyAsync 20 5 correlation=2\n"
        f"gpu0 gpu_memcpy {name} 1000 1000 correlation=2 stream=8"
    )
    assert share(draw(f"{STEP}\n{work(kernel, 4_000, 10, 1)}\n{copy}"), "pageable_copies") == gain


# ---- where nothing is advised ---------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["hipStreamBeginCapture", "cudaGraphInstantiate", "cudaStreamEndCapture_v1"])
def test_nothing_is_advised_on_the_capture_of_a_graph(call: str) -> None:
    picture = f"{STEP}\n{draw_launch(gap=200)}"
    assert ids(draw(picture)) and not ids(draw(f"{picture}\nhost cuda_runtime {call} 9990 5"))


def test_an_engine_that_waits_for_the_tokens_of_a_batch_is_not_told_to_stop_waiting() -> None:
    trace, _ = serve(Workload(faults=dict.fromkeys(range(9, 400, 9), ("scheduler", 6000))))
    assert "synchronization" not in ids(trace)
