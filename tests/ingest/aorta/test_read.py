"""Iteration metrics become a trace: ranges at their times, separate recordings, notes about damage."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.producers.aorta import Busy, iteration, line, smi_output, write
from torch_tb_profiler.analyses.timeline.counters import all_series
from torch_tb_profiler.base.errors import TooLargeError, TraceError
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.ingest import read_trace
from torch_tb_profiler.ingest import source as long_lines
from torch_tb_profiler.model.iterations import iterations, stream_ranges
from torch_tb_profiler.model.ranks import split_trace, trace_rank
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.session import Root, Session


def content(*lines: dict[str, Any]) -> bytes:
    return "".join(json.dumps(each) + "\n" for each in lines).encode()


def read(data: bytes) -> Trace:
    return read_trace(io.BytesIO(data), size=len(data))


def test_iterations_are_laid_end_to_end_with_their_ranges() -> None:
    trace = read(content(line(4, [Busy("compute", 10, 90)], 100, rank=3), line(5, [Busy("compute", -5, 60)], 100)))
    assert (trace.producer, trace.clock, trace_rank(trace)) == ("AORTA", "iteration", 3)
    found = iterations(trace)
    assert found.starts.tolist() == [0, 105_000] and found.totals.tolist() == [100_000, 100_000]
    assert found.begins.tolist() == [0, 100_000]
    assert steps(trace).names == ("4", "5")
    (rows,) = stream_ranges(trace).values()
    assert trace.events.start[rows].tolist() == [10_000, 100_000]
    assert trace.events.duration[rows].tolist() == [80_000, 65_000]
    assert trace.arg_float("loss", found.row).tolist() == [1 / 5, 1 / 6]


def test_an_iteration_starts_after_the_last_range_of_the_previous_one() -> None:
    trace = read(content(line(0, [Busy("compute", 0, 150)], 100), line(1, [], 100)))
    assert iterations(trace).starts.tolist() == [0, 150_000]


def test_a_global_step_that_does_not_increase_starts_a_recording() -> None:
    trace = read(content(*(line(step, iteration(step), 500) for step in (0, 1, 2, 0, 1, 1))))
    assert len(trace.recordings) == 3
    parts = split_trace(trace)
    assert [steps(part).names for part in parts.values()] == [("0", "1", "2"), ("0", "1"), ("1",)]
    assert all(iterations(part).starts[0] == 0 and part.recordings == () for part in parts.values())
    assert sum(len(part) for part in parts.values()) == len(trace)


def test_one_recording_is_not_split() -> None:
    trace = read(content(line(0, [], 10), line(1, [], 10)))
    assert split_trace(trace) == {}


def test_an_iteration_with_a_nan_loss_is_read_without_it() -> None:
    trace = read(content(line(0, iteration(0), 500, loss=float("nan")), line(1, iteration(0), 500)))
    found = iterations(trace)
    assert len(found.row) == 2
    assert trace.arg_float("loss", found.row)[1] == 0.5
    assert len(trace.args["loss"].rows) == 1


@pytest.mark.parametrize(
    "damage",
    [b"not json\n", b'{"global_step": 1}\n', b"[1, 2]\n", b"[" * 100_000 + b"\n", b'{"global_step": 1, "prof'],
    ids=["text", "no profile", "a list", "deep", "cut off"],
)
def test_a_damaged_line_is_noted_and_the_others_are_read(damage: bytes) -> None:
    valid = content(line(0, iteration(0), 500), line(1, iteration(1), 500))
    trace = read(valid + damage)
    (note,) = [note for note in trace.health if note.kind == "line_unreadable"]
    assert (note.count, note.first_offset) == (1, len(valid))
    assert len(iterations(trace).row) == 2


@pytest.mark.parametrize("time", ["NaN", "Infinity", "1e300", str(8 * 24 * 3600 * 1000)])
def test_ranges_with_invalid_times_are_skipped(time: str) -> None:
    data = content(line(0, [Busy("compute", 10, 90), Busy("aux", 0, 5)], 100))
    trace = read(data.replace(b'"end_ms": 0.09', b'"end_ms": ' + time.encode(), 1))
    assert [note.count for note in trace.health if note.kind == "bad_time"] == [1]
    assert {name: len(rows) for name, rows in stream_ranges(trace).items()} == {"aux": 1}


def test_a_file_without_iterations_is_an_error() -> None:
    with pytest.raises(TraceError, match="no iterations"):
        read(b'{"global_step": 0, "profile": {}}\n')


def test_a_line_over_the_limit_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_lines, "MAX_LINE_BYTES", 1 << 16)
    valid = content(line(0, iteration(0), 500))
    trace = read(valid + b"x" * (3 << 20) + b"\n" + content(line(1, [], 10)))
    assert [note.first_offset for note in trace.health if note.kind == "line_too_long"] == [len(valid)]
    assert steps(trace).names == ("0", "1")


def test_a_file_over_the_limit_is_refused() -> None:
    data = content(*(line(step, iteration(0), 500) for step in range(30)))
    with pytest.raises(TooLargeError):
        read_trace(io.BytesIO(data), size=len(data), limit=len(data) // 2)


def test_compressed_files_are_read() -> None:
    assert len(iterations(read(gzip.compress(content(line(0, [], 10))))).row) == 1


def rows_of(trace: Trace, category: str) -> list[tuple[str, int, int]]:
    """Return (name, start, duration) of the events of a category."""
    events = trace.events
    rows = [row for row in range(len(trace)) if trace.strings[events.category[row]] == category]
    return [(trace.strings[events.name[row]], int(events.start[row]), int(events.duration[row])) for row in rows]


def test_active_segments_are_a_lane() -> None:
    overlapping = [Busy("compute", 10, 90), Busy("allreduce", 60, 120)]
    trace = read(content(line(0, overlapping, 130), line(1, [Busy("aux", 0, 5)], 10)))
    assert rows_of(trace, "active_streams") == [
        ("compute", 10_000, 50_000),
        ("allreduce + compute", 60_000, 30_000),
        ("allreduce", 90_000, 30_000),
        ("aux", 130_000, 5_000),
    ]


def test_readings_of_rocm_smi_are_counters_that_hold_for_their_iteration() -> None:
    hot = smi_output({"Temperature (Sensor edge) (C)": 71}, {"Temperature (Sensor edge) (C)": "N/A"})
    trace = read(content(line(0, [], 100), line(1, [], 100, rocm_smi_output=hot)))
    (series,) = all_series(trace)
    assert (series.name, series.times.tolist(), series.values.tolist()) == (
        "GPU 0 edge, °C", [100_000], [71.0]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("damage", "kind"),
    [
        ({"rocm_smi_output": "no driver"}, "rocm_smi_unreadable"),
        ({"rocm_smi_output": {"a": 1}}, "rocm_smi_unreadable"),
        ({"rocm_smi_error": "rocm-smi not available"}, "rocm_smi_failed"),
        ({"rocm_smi_exit_code": 2}, "rocm_smi_failed"),
        ({"active_segments": [{"start_ms": "x"}]}, "segments_unreadable"),
        ({"active_segments": 7}, "segments_unreadable"),
    ],
)
def test_bad_readings_and_segments_cost_a_note_and_nothing_else(damage: dict[str, Any], kind: str) -> None:
    damaged = line(0, iteration(0), 500, **damage)
    if "active_segments" in damage:
        damaged["profile"]["overlap"]["active_segments"] = damaged.pop("active_segments")
    trace = read(content(damaged, line(1, iteration(1), 500)))
    assert [note.count for note in trace.health if note.kind == kind] == [1]
    assert len(iterations(trace).row) == 2
    assert sum(map(len, stream_ranges(trace).values())) == 2 * len(iteration(0))


@pytest.fixture
def session(tmp_path: Path) -> Session:
    for number in (0, 1):
        write(
            tmp_path / "artifacts", number, [line(step, iteration(number), 500, rank=number) for step in range(3)]
        )
    write(tmp_path / "artifacts", 1, [line(step, iteration(1), 600, rank=1) for step in range(2)])
    return Session([Root(str(tmp_path))], Settings(cache_bytes=0))


def test_files_are_workers_and_recordings_are_their_spans(session: Session) -> None:
    with session:
        (run,) = session.scan().runs
        assert [(each.name, each.rank) for each in run.workers] == [("rank0", 0), ("rank1", 1)]
        names = json.loads(session.view("trace", "artifacts", "rank1", "2", wait=True).payload or b"{}")
        assert names["counts"]["slices"] == 2 * (9 + 13)  # and the segments
        spans = {worker.name: [span.name for span in worker.spans] for worker in session.workers(run)}
        assert spans == {"rank0": ["1"], "rank1": ["1", "2"]}
        with pytest.raises(Exception, match="there is no span '3'"):
            session.view("trace", "artifacts", "rank1", "3", wait=True)


def test_only_views_of_iterations_are_available(session: Session) -> None:
    with session:
        (run,) = session.scan().runs
        session.wait(session.load(run.workers[0].spans[0]))
        reasons = session.unavailable(session.find("artifacts", "rank0", None))
    assert reasons is not None
    assert "trace" not in reasons
    assert (
        reasons["overview"] == "AORTA recorded only busy times of streams per iteration, so this view has no data"
    )
