"""Counters of rocprofv3: in its recordings, for the dispatches they were counted for, and in tables."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from tests.support.producers.rocpd import write_rocpd
from tests.support.producers.rocprof import (
    KERNELS,
    RocprofRun,
    counters_csv,
    document,
    draw_training,
    rocprof_json,
)
from tests.support.traces import read_bytes
from torch_tb_profiler.base.errors import TooLargeError, TraceError
from torch_tb_profiler.ingest import ignore_progress
from torch_tb_profiler.ingest.rocprof.counters import looks_like_counters, read_counters
from torch_tb_profiler.model.counters.dispatches import COUNTER_PREFIX, DispatchCounters
from torch_tb_profiler.model.kinds import Kind, rows_of_kind
from torch_tb_profiler.model.trace import Trace


def draw_counted(steps: int = 2) -> RocprofRun:
    """Write a step whose first kernel has both counters and its second one of them; values tell the dispatch."""
    run = draw_training(steps)
    run.dispatches = [
        replace(
            each,
            counters={"SQ_WAVES": 100.0 + position}
            if position % 2
            else {"SQ_WAVES": 100.0 + position, "FETCH_SIZE": 8.0},
        )
        for position, each in enumerate(run.dispatches)
    ]
    return run


def content(run: RocprofRun, format_: str) -> bytes:
    if format_ == "json":
        return rocprof_json(run)
    with TemporaryDirectory() as folder:
        return write_rocpd(Path(folder) / "x.db", run, format_.removeprefix("rocpd ")).read_bytes()


def values(trace: Trace) -> list[tuple[float, float]]:
    """Return (SQ_WAVES, FETCH_SIZE) of the kernels in order of time, -1 where they have none."""
    rows = rows_of_kind(trace, Kind.KERNEL)
    rows = rows[np.argsort(trace.events.start[rows])]
    columns = [
        np.nan_to_num(trace.arg_float(COUNTER_PREFIX + name, rows), nan=-1) for name in ("SQ_WAVES", "FETCH_SIZE")
    ]
    return list(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.parametrize("format_", ["json", "rocpd 3", "rocpd 4", "rocpd 4.1.0"])
def test_counters_of_a_kernel_are_summed_over_the_device(format_: str) -> None:
    trace = read_bytes(content(draw_counted(), format_))
    assert values(trace) == [(100, 8), (101, -1), (102, 8), (103, -1)]
    assert trace.health == ()


def test_kernels_with_counters_only_are_kernels() -> None:
    run = draw_counted()
    complete = document(run)
    complete["rocprofiler-sdk-tool"][0]["buffer_records"]["kernel_dispatch"] = []
    trace = read_bytes(json.dumps(complete).encode())
    assert values(trace) == [(100, 8), (101, -1), (102, 8), (103, -1)]
    kernels = rows_of_kind(trace, Kind.KERNEL)
    assert {trace.strings[code] for code in trace.events.name[kernels].tolist()} == set(KERNELS)
    assert sorted(trace.events.duration[kernels].tolist()) == sorted(d.end - d.start for d in run.dispatches)


def test_dispatches_of_two_processes_do_not_share_their_numbers() -> None:
    complete = document(draw_counted(1))
    other = document(draw_training(1))["rocprofiler-sdk-tool"]
    complete["rocprofiler-sdk-tool"] += other
    trace = read_bytes(json.dumps(complete).encode())
    assert sorted(values(trace)) == [(-1, -1), (-1, -1), (100, 8), (101, -1)]


def read(text: str, limit: int = 0) -> DispatchCounters:
    data = text.encode()
    return read_counters(io.BytesIO(data), size=len(data), report=ignore_progress, limit=limit)


def test_a_table_holds_the_dispatches_in_their_order() -> None:
    run = draw_counted()
    header, *lines = counters_csv(run).splitlines()
    found = read("\n".join([header, *reversed(lines)]))
    assert list(found.kernels) == [KERNELS[each.kernel] for each in run.dispatches]
    assert found.counters["SQ_WAVES"].tolist() == [100, 101, 102, 103]
    assert np.nan_to_num(found.counters["FETCH_SIZE"], nan=-1).tolist() == [8, -1, 8, -1]


def test_invalid_lines_are_skipped_and_values_of_a_dispatch_are_summed() -> None:
    header, first, *_ = counters_csv(draw_counted()).splitlines()
    broken = [
        "1,2",
        '"',
        first.replace("8.000000", "nan"),
        first.replace(",1,", ",x,", 1),
        first.replace("8.000000", "?"),
    ]
    found = read("\n".join([header, first, *broken, first]))
    assert {name: column.tolist() for name, column in found.counters.items()} == {"FETCH_SIZE": [16]}


def test_a_file_that_is_not_a_counter_table_is_refused() -> None:
    text = counters_csv(draw_counted())
    assert looks_like_counters(text.encode())
    assert not looks_like_counters(b"timestamp, index, utilization.gpu [%]\n")
    for wrong in ("a,b\n1,2\n", text.splitlines()[0]):
        with pytest.raises(TraceError):
            read(wrong)
    with pytest.raises(TooLargeError):
        read(text, limit=100)
