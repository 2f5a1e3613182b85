"""Merged files of sglang: a label before each pid tells the ranks apart."""

from __future__ import annotations

import pytest

from tests.support.traces import read
from torch_tb_profiler.analyses.shared.breakdown import breakdown
from torch_tb_profiler.model.devices import devices
from torch_tb_profiler.model.ranks import split_trace, trace_rank
from torch_tb_profiler.model.trace import Trace


def merge_ranks(*labels: str) -> Trace:
    """Merge ranks that launch a kernel each on the card of their number; the n-th takes n + 1 µs."""
    events = []
    for at, label in enumerate(labels):
        launch = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 10, "dur": 2, "tid": 7}
        kernel = {"ph": "X", "cat": "kernel", "name": "gemm", "ts": 20, "dur": at + 1, "tid": 7}
        args = {"correlation": 1, "device": at, "stream": 7}
        events += [
            {**launch, "pid": f"[{label}] 4242", "args": args},
            {**kernel, "pid": f"[{label}] {at}", "args": args},
        ]
    return read(events, distributedInfo={"rank": 0, "world_size": len(labels)})


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["TP00", "TP01"], [0, 1]),
        (["TP01-EP01", "TP03-EP00"], [1, 3]),
        (["TP00-DP01", "TP00-DP00", "TP01-DP00"], [2, 0, 1]),
    ],
)
def test_every_label_is_a_rank(labels: list[str], expected: list[int]) -> None:
    parts = split_trace(merge_ranks(*labels))
    assert list(parts) == sorted(expected)
    for at, number in enumerate(expected):
        assert breakdown(parts[number]).times["kernel"].tolist() == [1000 * (at + 1)]
        assert [device.id for device in devices(parts[number])] == [at]
        assert trace_rank(parts[number]) == number  # not 0: `distributedInfo` is of the first file


@pytest.mark.parametrize("labels", [["TP00"], ["Unknown", "TP00"], ["rank 0", "rank 1"]])
def test_other_pids_are_one_trace(labels: list[str]) -> None:
    assert split_trace(merge_ranks(*labels)) == {}
