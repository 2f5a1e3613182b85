"""What is read of rocprofv3's files: the same from each format, and equal to what was drawn."""

from __future__ import annotations

import io
import json
import re
import sqlite3
from collections import Counter
from contextlib import closing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

import numpy as np
import pytest

from tests.support.producers.rocpd import write_rocpd
from tests.support.producers.rocprof import (
    BOOT,
    CATEGORIES,
    GPU_INDEX,
    KERNELS,
    PID,
    RocprofRun,
    chrome,
    document,
    draw_training,
    rocprof_json,
)
from tests.support.traces import read_bytes
from tests.support.views import ask
from torch_tb_profiler.ingest import Progress, read_trace
from torch_tb_profiler.model.calls.links import device_launches
from torch_tb_profiler.model.kinds import Kind, rows_of_kind
from torch_tb_profiler.model.ranks import trace_rank
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.thread_names import process_and_thread_names
from torch_tb_profiler.model.trace import ABSENT, Trace
from torch_tb_profiler.model.vendors.recording_options import RecordingTopic, recording_option
from torch_tb_profiler.views import all_tabs

RUN = draw_training(3)
FORMATS = ("json", "rocpd 3", "rocpd 4", "rocpd 4.1.0")


def database(run: RocprofRun, version: str = "3") -> bytes:
    with TemporaryDirectory() as folder:
        return write_rocpd(Path(folder) / "x.db", run, version).read_bytes()


@cache
def read_drawn(format_: str) -> Trace:
    if format_.startswith("rocpd"):
        return read_bytes(database(RUN, format_.removeprefix("rocpd ")))
    return read_bytes(chrome(RUN) if format_ == "chrome" else rocprof_json(RUN))


def slices(trace: Trace) -> Counter[tuple[Any, ...]]:
    """Return each slice with its absolute times, place and what joins it."""
    events, correlation = trace.events, trace.arg_int("correlation")
    grid, grids = trace.arg_codes("grid")
    moved = trace.arg_int("bytes")
    rows = np.flatnonzero(events.phase == ord("X")).tolist()
    return Counter(
        (
            trace.strings[events.category[row]],
            trace.strings[events.name[row]],
            trace.threads[events.thread[row]].label,
            int(events.start[row]) + trace.trace_start_ns,
            int(events.duration[row]),
            int(correlation[row]),
            grids[grid[row]] if grid[row] >= 0 else None,
            int(moved[row]) if moved[row] != ABSENT else None,
        )
        for row in rows
    )


def expected_slices(run: RocprofRun) -> Counter[tuple[Any, ...]]:
    """Return the slices of what was drawn, from the drawing."""
    found: Counter[tuple[Any, ...]] = Counter()
    for call in run.calls:
        text = call.message or call.name
        name = "ProfilerStep#" + text[5:] if text.startswith("step ") else text
        place = f"{PID}/{call.tid}"
        times = (BOOT + call.start, call.end - call.start, call.correlation)
        found.update([(CATEGORIES[call.domain], name, place, *times, None, None)])
    for each in run.dispatches:
        blocks = [-(-items // size) for items, size in zip(each.grid, each.block, strict=True)]
        times = (BOOT + each.start, each.end - each.start, each.correlation)
        grid = f"[{','.join(map(str, blocks))}]"
        found.update([("kernel", KERNELS[each.kernel], f"{GPU_INDEX}/{each.stream}", *times, grid, None)])
    for copy in run.copies:
        times = (BOOT + copy.start, copy.end - copy.start, copy.correlation)
        place = f"{GPU_INDEX}/{copy.stream}"
        found.update([("gpu_memcpy", "Memcpy HtoD (Host -> Device)", place, *times, None, copy.size)])
    return found


@pytest.mark.parametrize("format_", FORMATS)
def test_parsed_slices_are_the_recorded_ones(format_: str) -> None:
    trace = read_drawn(format_)
    assert slices(trace) == expected_slices(RUN)
    assert (trace.producer, trace.clock, trace.health) == ("rocprofv3", "boot", ())
    assert trace_rank(trace) == (None if format_ == "json" else 3)
    rows, launch = device_launches(trace)
    assert len(rows) == len(RUN.dispatches) + len(RUN.copies) and (launch >= 0).all()
    assert steps(trace).names == ("0", "1", "2")
    assert process_and_thread_names(trace).process == {PID: "python train.py", GPU_INDEX: f"GPU {GPU_INDEX}"}


def normalize(payload: Any, trace: Trace) -> Any:
    """Return a payload whose events are named by what they are: the formats list them in another order."""

    def event(row: int) -> str:
        events = trace.events
        return f"{trace.strings[events.name[row]]}@{events.start[row]}"

    if isinstance(payload, dict):
        return {
            key: event(value) if key == "event" and isinstance(value, int) else normalize(value, trace)
            for key, value in payload.items()
            if key not in ("rank", "world_size")  # of rocprofv3's formats rocpd alone says it
        }
    if isinstance(payload, list):
        return [normalize(each, trace) for each in payload]
    if isinstance(payload, str):
        return re.sub(r"event=(\d+)", lambda match: event(int(match[1])), payload)
    return payload


def in_terms_of(trace: Trace, payload: Any, other: Trace) -> Any:
    """Return the texts about another trace, with the options of this trace's producer."""
    text = json.dumps(payload, ensure_ascii=False)
    for topic in sorted(get_args(RecordingTopic), key=lambda topic: -len(recording_option(other, topic))):
        text = text.replace(recording_option(other, topic), recording_option(trace, topic))
    return json.loads(text)


@pytest.mark.parametrize("view", ["overview", "operators", "kernels", "idle", "critical_path", "memory"])
@pytest.mark.parametrize("format_", FORMATS)
def test_numbers_equal_those_of_the_same_run_written_by_pytorch(format_: str, view: str) -> None:
    """Every word, too, but how what is missing can be recorded: each tool has options of its own."""
    trace, other = read_drawn(format_), read_drawn("chrome")
    assert normalize(ask(trace, view), trace) == in_terms_of(trace, normalize(ask(other, view), other), other)


@pytest.mark.parametrize("format_", FORMATS)
def test_the_timeline_equals_that_of_the_same_run_written_by_pytorch(format_: str) -> None:
    """All but the name of the process, which PyTorch does not write, which clock it is, and who opens the file."""
    mine, other = ask(read_drawn(format_), "trace"), ask(read_drawn("chrome"), "trace")
    for key in mine.keys() - {"groups", "reasons", "perfetto"}:
        assert mine[key] == other[key], key


@pytest.mark.parametrize("format_", FORMATS)
def test_tabs_are_available_as_for_the_same_run_written_by_pytorch(format_: str) -> None:
    trace, other = read_drawn(format_), read_drawn("chrome")
    theirs = in_terms_of(trace, {tab.slug: tab.reason(other) for tab in all_tabs()}, other)
    assert {tab.slug: tab.reason(trace) for tab in all_tabs()} == theirs
    assert [tab.slug for tab in all_tabs() if tab.reason(trace) is None] == [
        "overview", "kernels", "trace", "idle", "critical_path", "origins", "distributed", "diff",
    ]  # fmt: skip


@pytest.mark.parametrize("format_", FORMATS)
def test_totals_equal_the_recorded_ones(format_: str) -> None:
    rows = {row["name"]: row for row in ask(read_drawn(format_), "kernels")["rows"]}
    for number, name in enumerate(KERNELS):
        own = [each.end - each.start for each in RUN.dispatches if each.kernel == number]
        assert (rows[name]["calls"], rows[name]["total_ns"]) == (len(own), sum(own))
    (step, *_) = ask(read_drawn(format_), "overview")["steps"]
    assert step["categories"]["kernel"] == RUN.dispatches[0].end - RUN.dispatches[0].start
    assert step["categories"]["communication"] == RUN.dispatches[1].end - RUN.dispatches[0].end
    assert step["categories"]["memcpy"] == RUN.copies[0].end - RUN.copies[0].start


def test_without_streams_the_queues_are_the_lanes() -> None:
    trace = read_bytes(rocprof_json(RUN, streams=False))
    kernels = rows_of_kind(trace, Kind.KERNEL)
    assert {trace.threads[code].label for code in trace.events.thread[kernels].tolist()} == {"1/1", "1/2"}
    assert {name for name in process_and_thread_names(trace).thread.values() if name} >= {"queue 1", "queue 2"}


def test_two_processes_of_a_file_do_not_share_their_calls(tmp_path: Path) -> None:
    path = write_rocpd(tmp_path / "x.db", RUN)
    write_rocpd(path, RUN, uuid="_019a5f0c_72a4_7d1e_9d5b_0242ac120003")
    merged = document(RUN)
    merged["rocprofiler-sdk-tool"] *= 2
    for content in (path.read_bytes(), json.dumps(merged).encode()):
        trace = read_bytes(content)
        rows, launch = device_launches(trace)
        assert len(rows) == 2 * (len(RUN.dispatches) + len(RUN.copies))
        assert len(set(launch.tolist())) == len(rows)


@pytest.mark.slow
def test_a_large_document_is_read_in_blocks_with_progress() -> None:
    content = rocprof_json(draw_training(2000))
    assert len(content) > 5 << 20
    seen: list[Progress] = []
    trace = read_trace(io.BytesIO(content), size=len(content), report=seen.append)
    assert slices(trace) == expected_slices(draw_training(2000))
    reading = [each for each in seen if each.stage == "reading"]
    assert len(reading) > 4
    assert [each.bytes_done for each in reading] == sorted(each.bytes_done for each in reading)
    assert 0 < reading[len(reading) // 2].events < len(trace)


def test_a_call_without_duration_and_null_fields_are_read_as_missing(tmp_path: Path) -> None:
    path = write_rocpd(tmp_path / "x.db", RUN)
    with closing(sqlite3.connect(path)) as connection, connection:
        (table,) = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'rocpd_memory_copy%'"
        ).fetchone()
        connection.execute(f"UPDATE {table} SET event_id = NULL, stream_id = NULL WHERE id = 1")
    trace = read_bytes(path.read_bytes())
    rows, launch = device_launches(trace)
    assert (launch < 0).sum() == 1
