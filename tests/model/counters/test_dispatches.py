"""Tests of counter files beside a trace: joined by the order of kernels, or left out with a reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.model.work.operator_events import kernel, launch, operator
from tests.support.traces import read
from torch_tb_profiler.model.counters.dispatches import (
    COUNTER_FILES_NOTE,
    COUNTER_PREFIX,
    DispatchCounters,
    with_counters,
)
from torch_tb_profiler.model.counters.measures import counter_work
from torch_tb_profiler.model.counters.ranges import counter_ranges
from torch_tb_profiler.model.trace import Trace

GEMM, RELU, SOFT = "Cijk_Ailk_MT64x64_MI16x16x16x1", "void relu<float, 4>(float*)", "softmax"


def trace_of(*kernels: str, **more: Any) -> Trace:
    """Return a trace of kernels launched one after the other in `aten::x`."""
    events = [operator("aten::x", 0, 500)]
    for at, name in enumerate(kernels, 1):
        events += [launch(at, at), kernel(name, 1000 + 10 * at, 5, at, **more)]
    return read(events)


def waves(trace: Trace) -> list[float | None]:
    found = trace.arg_float(COUNTER_PREFIX + "SQ_WAVES", counter_ranges(trace).rows)
    return [None if np.isnan(value) else value for value in found.tolist()]


def join_counters(trace: Trace, kernels: list[str], *values: list[float]) -> Trace:
    names = ("SQ_WAVES", "FETCH_SIZE")
    counters = {name: np.array(column, float) for name, column in zip(names, values, strict=False)}
    return with_counters(trace, [DispatchCounters(kernels, counters)])


def test_the_nth_kernel_has_what_was_counted_for_the_nth_dispatch() -> None:
    trace = join_counters(trace_of(GEMM, RELU, GEMM), ["fill", "fill", GEMM, RELU, GEMM], [1, 2, 3, 4, 5])
    assert waves(trace) == [3, 4, 5]
    found = counter_ranges(trace)
    assert found.amd
    assert {trace.strings[trace.events.name[row]] for row in found.operator.tolist()} == {"aten::x"}
    assert [note.kind for note in trace.health] == [COUNTER_FILES_NOTE]
    assert "times" not in trace.health[0].message


def test_kernels_that_match_at_several_places_have_the_means_and_a_note() -> None:
    """Where a file lacks the value at one place, there is no mean for that kernel."""
    step = [GEMM, RELU]
    trace = join_counters(trace_of(*step), ["fill", *step, *step, *step], [9, 1, 10, 2, 20, 6, float("nan")])
    assert waves(trace) == [3]
    assert "occur 3 times" in trace.health[0].message
    assert "means over these 3 dispatches" in trace.health[0].message


def test_kernels_are_ordered_by_launch_not_by_their_time_on_streams() -> None:
    events = [launch(1, 1), launch(2, 2), kernel(GEMM, 90, 5, 1), kernel(RELU, 50, 5, 2)]
    trace = join_counters(read(events), [GEMM, RELU], [1, 2])
    names = [trace.strings[trace.events.name[row]] for row in counter_ranges(trace).rows.tolist()]
    assert dict(zip(names, waves(trace), strict=True)) == {GEMM: 1, RELU: 2}


@pytest.mark.parametrize(
    "dispatches",
    [
        [RELU, GEMM],  # another order
        [GEMM, RELU, SOFT, SOFT, SOFT],  # most are of another program
        [],
    ],
)
def test_counters_that_do_not_match_are_left_out_with_a_warning(dispatches: list[str]) -> None:
    trace = join_counters(trace_of(GEMM, RELU), dispatches, [1.0] * len(dispatches))
    assert not len(counter_ranges(trace))
    assert [(note.kind, note.severity) for note in trace.health] == [("counters_left_out", "warning")]


def test_kernels_that_were_not_counted_have_no_counters() -> None:
    """`--kernel-include-regex relu` counts some kernels alone."""
    trace = join_counters(trace_of(GEMM, RELU, GEMM, RELU), [RELU, RELU], [1, 2])
    assert waves(trace) == [1, 2]
    assert {trace.strings[trace.events.name[row]] for row in counter_ranges(trace).rows.tolist()} == {RELU}


def test_files_of_several_passes_add_their_counters() -> None:
    first = DispatchCounters([GEMM, RELU], {"SQ_WAVES": np.array([1.0, 2.0])})
    second = DispatchCounters([GEMM, RELU], {"FETCH_SIZE": np.array([8.0, 9.0]), "SQ_WAVES": np.array([7.0, 7.0])})
    trace = with_counters(trace_of(GEMM, RELU), [first, second])
    assert waves(trace) == [1, 2]  # a counter of both passes is that of the first
    assert counter_work(trace).names == ("FETCH_SIZE", "SQ_WAVES")
    assert [(note.kind, note.count) for note in trace.health] == [(COUNTER_FILES_NOTE, 2)]


def test_a_trace_keeps_its_own_counters() -> None:
    trace = join_counters(trace_of(GEMM, **{COUNTER_PREFIX + "SQ_WAVES": 5.5}), [GEMM], [1])
    assert waves(trace) == [5.5]


def test_names_match_in_the_spelling_of_both_tools() -> None:
    trace = join_counters(trace_of(RELU, "kernel"), [RELU.replace(", ", ","), "kernel.kd"], [1, 2])
    assert waves(trace) == [1, 2]
