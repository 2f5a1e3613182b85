"""Tests of which launch and operator a counter range belongs to, and when that is unknown."""

from __future__ import annotations

import pytest

from tests.model.work.operator_events import counter_range, instruction_counters, kernel, launch, operator
from tests.support.traces import read
from torch_tb_profiler.model.counters.ranges import counter_ranges
from torch_tb_profiler.model.trace import Trace


def range_operators(trace: Trace) -> list[tuple[str, str | None]]:
    """Return (range, operator around its launch) by time."""
    names = [trace.strings[code] for code in trace.events.name]
    found = counter_ranges(trace)
    return [
        (names[row], names[at] if at >= 0 else None)
        for row, at in zip(found.rows.tolist(), found.operator.tolist(), strict=True)
    ]


HOST = [
    operator("aten::conv2d", 0, 40), operator("aten::cudnn_convolution", 1, 30), launch(5, 1), launch(15, 2),
    operator("aten::relu", 50, 20), launch(55, 3),
]  # fmt: skip


def test_the_nth_range_is_that_of_the_nth_launch() -> None:
    """The times of ranges are made up, and their place in the file doesn't matter."""
    counts = [
        counter_range(name, at, instruction_counters())
        for name, at in (("relu", 900), ("conv", 300), ("pad", 100))
    ]
    trace = read([*counts, *HOST])
    assert range_operators(trace) == [
        ("pad", "aten::cudnn_convolution"),
        ("conv", "aten::cudnn_convolution"),
        ("relu", "aten::relu"),
    ]
    assert counter_ranges(trace).reason is None
    assert counter_ranges(trace).kernel.tolist() == [-1, -1, -1]


def test_a_driver_call_inside_a_runtime_call_is_the_same_launch() -> None:
    driver = {**launch(55.2, 3), "cat": "cuda_driver", "name": "cuLaunchKernel"}
    apart = {**launch(60, 4), "cat": "cuda_driver", "name": "cuLaunchKernelEx"}
    other = {**launch(62, 5), "name": "cudaMemsetAsync"}
    trace = read(
        [*HOST, driver, apart, other, *(counter_range("k", at, instruction_counters()) for at in (1, 2, 3, 4))]
    )
    assert [operator for _, operator in range_operators(trace)] == [
        *["aten::cudnn_convolution"] * 2,
        *["aten::relu"] * 2,
    ]


@pytest.mark.parametrize(
    ("counts", "reason"),
    [
        ([counter_range("all", 0, instruction_counters())], "1 counted ranges for 3 kernel launches"),
        ([counter_range("k", at, instruction_counters(), at % 2) for at in (1, 2, 3)], "several devices"),
    ],
    ids=["one range for all", "two devices"],
)
def test_ranges_that_can_not_be_matched_have_no_operators(counts: list[object], reason: str) -> None:
    trace = read([*HOST, *counts])
    assert {operator for _, operator in range_operators(trace)} == {None}
    assert reason in (counter_ranges(trace).reason or "")


@pytest.mark.parametrize(("second", "matches"), [("conv", True), ("__missing__", True), ("gemm", False)])
def test_kernels_beside_ranges_must_have_their_names(second: str, matches: bool) -> None:
    kernels = [kernel("pad", 20, 5, 1), kernel("conv", 30, 5, 2), kernel("relu", 60, 5, 3)]
    counts = [counter_range(name, at, instruction_counters()) for at, name in enumerate(("pad", second, "relu"))]
    found = counter_ranges(trace := read([*HOST, *kernels, *counts]))
    names = [trace.strings[trace.events.name[row]] if row >= 0 else None for row in found.kernel.tolist()]
    assert names == (["pad", "conv", "relu"] if matches else [None] * 3)
    assert (found.reason is None) is matches


def test_a_trace_without_counters_has_none() -> None:
    assert len(counter_ranges(read([*HOST, kernel("pad", 20, 5, 1)]))) == 0
    assert counter_ranges(read(HOST)).reason is None
