"""Waits for the device that no call records are told by the host's silence, and chance is not taken for one."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.traces import draw
from torch_tb_profiler.model.calls.calltree import call_tree
from torch_tb_profiler.model.kinds import event_ends
from torch_tb_profiler.model.schedule.unrecorded_waits import MIN_SILENCE_NS, find_silences, unrecorded_waits
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.critical_path.build import build as build_critical_path
from torch_tb_profiler.views.critical_path.payload import CriticalPathParams
from torch_tb_profiler.views.idle.build import build as build_idle
from torch_tb_profiler.views.idle.payload import IdleParams
from torch_tb_profiler.views.overview.build import build as build_overview

ITEM = "host cpu_op aten::item {begin} {time}"
POLL = "\n".join(f"host cuda_runtime cudaEventQuery {{begin}}.{i} 0.05" for i in range(8))


def training(wait: str = "", returns: int = 5, steps: int = 4, kernel: int = 2_000, more: str = "") -> Trace:
    """Draw steps that launch a kernel and go on `returns` us after its end, for which `wait` is recorded."""
    lines = []
    length = kernel + returns + 220
    for step in range(steps):
        at = step * length
        begin, end = at + 120, at + 114 + kernel
        lines += [
            f"host user_annotation ProfilerStep#{step} {at} {length}",
            f"host cpu_op aten::to {at} 100",
            f"host cuda_runtime cudaLaunchKernel {at + 102} 10 correlation={step + 1}",
            f"gpu0 kernel gemm {at + 114} {kernel} correlation={step + 1} stream=7",
            wait.format(begin=begin, time=end + returns - begin),
            f"host cpu_op aten::add {end + returns} 100",
        ]
    return draw("\n".join([*lines, more]))


@pytest.mark.parametrize("wait", ["", ITEM, POLL], ids=["nothing", "an operator", "polls"])
def test_a_host_that_goes_on_right_after_the_device_is_done_waited_for_it(wait: str) -> None:
    waits = unrecorded_waits(training(wait))
    assert (waits.resume - waits.since).min() > 1_900_000
    assert len(waits.item) == 4 and waits.item.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "trace",
    [
        training(ITEM, returns=100),  # it goes on later than a wait would
        training(ITEM, kernel=90),  # the silence is too short
        training(ITEM, returns=-500),  # it goes on before the kernel ends
        training(ITEM, more="host cuda_runtime cudaStreamSynchronize 2000 118"),  # such calls are recorded
    ],
    ids=["late", "short", "early", "recorded"],
)
def test_otherwise_it_worked(trace: Trace) -> None:
    assert len(unrecorded_waits(trace).item) == 0


def test_one_silence_that_ends_with_the_device_among_others_is_chance() -> None:
    """In one of four steps, a kernel of another thread ends when this one goes on."""
    lines = "\n".join(
        f"host2 cpu_op aten::mm {i * 2_225 + 130} 1000\n"
        f"host2 cuda_runtime cudaLaunchKernel {i * 2_225 + 125} 2 correlation={100 + i}\n"
        f"gpu0 kernel relu {i * 2_225 + 130} {1_995 if i == 1 else 700} correlation={100 + i} stream=8"
        for i in range(4)
    )
    trace = training(ITEM, returns=100, more=lines)
    assert not len(unrecorded_waits(trace).item)


def test_a_busy_device_is_what_bounds_such_a_trace() -> None:
    """And not the host, which only waits; twice as fast, the kernel takes 1 ms less."""
    trace = training(ITEM)
    path = build_critical_path(trace, CriticalPathParams())
    assert plain(path.headline).startswith("An average step is GPU-bound: 89.9% of its critical path is kernels")
    assert "cut the step from 2.23 ms to 1.23 ms." in plain(path.headline)
    assert "it is assumed to be waiting" in plain(path.limits)
    assert "critical path is device work" in plain(build_overview(trace, NoParams()).spent)
    assert plain(build_idle(trace, IdleParams()).explanation).endswith(
        "The host seems to have waited for the GPU, although no recorded call does."
    )
    works = training(ITEM, returns=100)
    path = build_critical_path(works, CriticalPathParams())
    assert plain(path.headline).startswith("An average step is host-bound: 100% ")
    assert "it is assumed to be waiting" not in plain(path.limits)
    assert "No sync caused this" in plain(build_idle(works, IdleParams()).explanation)


def waiting(after: int) -> Trace:
    """Draw steps in which a call for an event returns so long after a kernel of 1 ms."""
    lines = []
    for step in range(4):
        at = step * 10_000
        lines += [
            f"host user_annotation ProfilerStep#{step} {at} 10000",
            f"host cuda_runtime cudaLaunchKernel {at + 2} 8 correlation={step + 1}",
            f"gpu0 kernel gemm {at + 15} 1000 correlation={step + 1} stream=7",
            f"host cuda_runtime cudaEventSynchronize {at + 20} {995 + after}",
            f"host cpu_op aten::add {at + 1_015 + after} {8_985 - after}",
        ]
    return draw("\n".join(lines))


def test_a_call_that_outlasts_all_recorded_work_waits_for_something_unknown() -> None:
    unknown = "calls waiting for something unrecorded"
    trace = waiting(after=6_000)
    headline = plain(build_critical_path(trace, CriticalPathParams()).headline)
    assert headline.startswith("An average step is bound by an unrecorded wait: 59.")
    assert headline.endswith(f"of its critical path is {unknown}.")
    assert f"critical path is {unknown}." in plain(build_overview(trace, NoParams()).spent)
    short = waiting(after=10)
    assert unknown not in plain(build_overview(short, NoParams()).spent)
    assert plain(build_critical_path(short, CriticalPathParams()).headline).startswith(
        "An average step is host-bound: 8"
    )


@pytest.mark.parametrize("seed", range(8))
def test_silences_are_between_all_begins_and_ends(seed: int) -> None:
    """They are sought in few gaps; looking at every begin and end on the thread finds the same ones."""
    random = np.random.default_rng(seed)
    trace = draw(
        "\n".join(
            f"host cpu_op op{i} {begin} {time}"
            for i, (begin, time) in enumerate(
                zip(random.integers(0, 20_000, 60).tolist(), random.integers(0, 4_000, 60).tolist(), strict=True)
            )
        )
    )
    tree = call_tree(trace)
    rows = tree.rows[tree.lane[tree.rows] == 0]
    times = np.unique(np.append(trace.events.start[rows], event_ends(trace)[rows]))
    long = np.diff(times) >= MIN_SILENCE_NS
    since, resume = find_silences(trace, 0)
    assert long.any()
    assert since.tolist() == times[:-1][long].tolist() and resume.tolist() == times[1:][long].tolist()
