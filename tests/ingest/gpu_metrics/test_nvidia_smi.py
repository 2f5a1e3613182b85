"""Samples of nvidia-smi become counters; their times are local and the time zone is unknown."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.traces import document, event
from tests.support.views import ask
from tests.support.waiting import PATIENCE
from torch_tb_profiler.analyses.timeline.counters import all_series
from torch_tb_profiler.base.errors import TooLargeError, TraceError
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.ingest import ignore_progress, read_trace
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.session import Root, Session

HEADER = "timestamp, index, name, utilization.gpu [%], power.draw [W], temperature.gpu, driver_version"
LINES = [
    "2024/01/02 03:04:05.250, 0, NVIDIA H100, 45 %, 312.45 W, 60, 550.54",
    "2024/01/02 03:04:05.255, 1, NVIDIA H100, [N/A], 98.00 W, [Not Supported], 550.54",
    "2024/01/02 03:04:06.250, 0, NVIDIA H100, 50 %, 320.00 W, 61, 550.54",
    "2024/01/02 03:04:06.255, 1, NVIDIA H100, 0 %, 99.50 W, 40, 550.54",
]


def read(*lines: str) -> Trace:
    content = "\r\n".join(lines).encode()
    return read_trace(io.BytesIO(content), size=len(content))


def counters(trace: Trace) -> dict[str, list[tuple[int, float]]]:
    return {
        each.name: list(zip(each.times.tolist(), each.values.tolist(), strict=True)) for each in all_series(trace)
    }


def notes(trace: Trace) -> dict[str, int]:
    return {note.kind: note.count for note in trace.health}


FIRST, LATER = 0, 1_000_000_000
EXPECTED = {
    "utilization.gpu [%], GPU 0 · NVIDIA H100": [(FIRST, 45.0), (LATER, 50.0)],
    "power.draw [W], GPU 0 · NVIDIA H100": [(FIRST, 312.45), (LATER, 320.0)],
    "temperature.gpu, GPU 0 · NVIDIA H100": [(FIRST, 60.0), (LATER, 61.0)],
    "utilization.gpu [%], GPU 1 · NVIDIA H100": [(LATER + 5_000_000, 0.0)],
    "power.draw [W], GPU 1 · NVIDIA H100": [(5_000_000, 98.0), (LATER + 5_000_000, 99.5)],
    "temperature.gpu, GPU 1 · NVIDIA H100": [(LATER + 5_000_000, 40.0)],
}


def test_each_column_of_each_gpu_becomes_a_counter() -> None:
    trace = read(HEADER, *LINES)
    assert counters(trace) == EXPECTED
    assert (trace.producer, trace.clock, trace.base_ns, trace.trace_start_ns) == ("nvidia-smi", "local", 0, 0)
    (note,) = trace.health
    assert "2024-01-02 03:04:05.250" in note.message and "zone" in note.message


def test_units_in_the_cells_do_not_change_the_values() -> None:
    bare = [line.replace(" %", "").replace(" W", "") for line in LINES]
    assert counters(read(HEADER, *bare)) == EXPECTED


def test_a_repeated_header_starts_another_table() -> None:
    again = "timestamp, index, power.draw [W]"
    trace = read(HEADER, LINES[0], again, "2024/01/02 03:04:07.250, 0, 200.00 W")
    assert counters(trace)["power.draw [W], GPU 0"] == [(2_000_000_000, 200.0)]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("2024/01/02 03:04:05.250, 0", "line_unreadable"),
        ("yesterday, 0, NVIDIA H100, 45 %, 312.45 W, 60, 550.54", "line_unreadable"),
        ("2024/01/02 03:04:05.250+02:00, 0, NVIDIA H100, 45 %, 312.45 W, 60, 550.54", "line_unreadable"),
        ("2031/01/02 03:04:05.250, 0, NVIDIA H100, 45 %, 312.45 W, 60, 550.54", "bad_time"),
    ],
)
def test_a_line_that_is_not_a_sample_is_skipped_and_noted(line: str, kind: str) -> None:
    trace = read(HEADER, LINES[0], line, *LINES[1:])
    assert counters(trace) == EXPECTED
    assert notes(trace)[kind] == 1


def test_a_clock_that_goes_back_is_noted() -> None:
    trace = read(HEADER, LINES[2], LINES[0])
    assert notes(trace)["clock_back"] == 1
    assert counters(trace)["temperature.gpu, GPU 0 · NVIDIA H100"] == [(0, 60.0), (LATER, 61.0)]


def test_a_table_without_samples_is_an_error() -> None:
    with pytest.raises(TraceError, match="no samples"):
        read(HEADER, "2024/01/02 03:04:05.250, 0, NVIDIA H100, [N/A], [N/A], [N/A], 1")


def test_a_table_larger_than_the_limit_is_refused() -> None:
    content = "\n".join([HEADER, *LINES * 1000]).encode()
    with pytest.raises(TooLargeError):
        read_trace(io.BytesIO(content), size=len(content), report=ignore_progress, limit=10_000)


def test_a_table_beside_a_run_is_a_separate_run(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "w.1.pt.trace.json").write_bytes(document([event("gpu0 kernel gemm 10 20 stream=1")]))
    (run / "smi_trace.csv").write_text("\n".join([HEADER, *LINES]))
    (run / "7_kernel_trace.csv").write_text("Kind,Agent_Id,Kernel_Name\n")
    with Session([Root(str(tmp_path))], Settings(cache_bytes=0)) as session:
        runs = {run.name: [worker.name for worker in run.workers] for run in session.scan().runs}
        assert runs == {"run": ["w"], "run/smi_trace.csv": ["smi_trace"]}

        def ask(view: str) -> Any:
            answer = session.view(view, run="run/smi_trace.csv", wait=True, timeout=PATIENCE)
            assert answer.payload is not None
            return json.loads(answer.payload)

        timeline = ask("trace")
        assert {track["name"] for track in timeline["tracks"] if track["kind"] == "counter"} == set(EXPECTED)
        headline = "".join(part["text"] for part in timeline["headline"])
        assert headline == "Counters only: 10 samples in 1.01 s."


def test_samples_of_a_single_time_have_no_duration() -> None:
    (headline,) = ask(read(HEADER, LINES[0]), "trace")["headline"]
    assert headline["text"] == "Counters only: 3 samples, all at the same time."


MONITOR = [
    "#Date       Time        gpu    pwr  gtemp  mtemp     sm   pclk",
    "#YYYYMMDD   HH:MM:SS    Idx      W      C      C      %    MHz",
    " 20240104   13:54:35      0    239     40      -      6   1695",
    " 20240104   13:54:35      1     98     35      -      0    210",
    "",
    " 20240104   13:54:36      0    240     41      -     97   1980",
]
MONITOR_EXPECTED = {
    "pwr [W], GPU 0": [(0, 239.0), (10**9, 240.0)],
    "gtemp [C], GPU 0": [(0, 40.0), (10**9, 41.0)],
    "sm [%], GPU 0": [(0, 6.0), (10**9, 97.0)],
    "pclk [MHz], GPU 0": [(0, 1695.0), (10**9, 1980.0)],
    "pwr [W], GPU 1": [(0, 98.0)],
    "gtemp [C], GPU 1": [(0, 35.0)],
    "sm [%], GPU 1": [(0, 0.0)],
    "pclk [MHz], GPU 1": [(0, 210.0)],
}


@pytest.mark.parametrize("commas", [False, True])
def test_counters_of_the_monitor_have_the_units_of_its_header(commas: bool) -> None:
    repeated = [*MONITOR[:-1], *MONITOR[:2], MONITOR[-1]]  # the headers come again every few lines
    trace = read(*(", ".join(line.split()) if commas else line for line in repeated))
    assert counters(trace) == MONITOR_EXPECTED
    assert (trace.producer, trace.clock) == ("nvidia-smi", "local")
    assert notes(trace) == {"local_time": 1}


def test_a_truncated_line_of_the_monitor_is_noted() -> None:
    trace = read(*MONITOR, " 20240104   13:54:37      0    2", " someday    13:54:37      0 1 1 1 1 1")
    assert counters(trace) == MONITOR_EXPECTED
    assert notes(trace)["line_unreadable"] == 2


DAMAGED_HEADERS = [
    MONITOR[0].replace("#Date", "#D\ufffdte"),
    MONITOR[0].replace("gpu", "gp\ufffd"),
    MONITOR[0].replace("Time", "Time,"),  # as a header of commas
    MONITOR[0].replace("Time", "T\u0131me"),  # an i without its dot is equal to one where case does not count
    MONITOR[0].replace("Time", "T\u0130me"),
    MONITOR[0].replace("#", ""),
]


@pytest.mark.parametrize("header", DAMAGED_HEADERS)
def test_a_repeated_header_with_a_damaged_name_does_not_change_the_columns(header: str) -> None:
    trace = read(*MONITOR[:-1], header, *MONITOR[1:2], MONITOR[-1])
    assert counters(trace) == MONITOR_EXPECTED
    assert set(notes(trace)) <= {"local_time", "line_unreadable"}


@pytest.mark.parametrize("name", ["gpu", "Date", "time"])
def test_a_later_column_named_like_a_leading_one_is_a_counter(name: str) -> None:
    trace = read(MONITOR[0].replace("gtemp", name), *MONITOR[1:])
    assert counters(trace) == {key.replace("gtemp", name): value for key, value in MONITOR_EXPECTED.items()}


def test_date_and_time_may_be_swapped() -> None:
    swapped = [re.sub(r"^( *#?\S+)( +)(\S+)", r"\3\2\1", line) for line in MONITOR]
    swapped = [line if "#" not in line else "#" + line.replace("#", "") for line in swapped]
    assert swapped[0].split()[:3] == ["#Time", "Date", "gpu"]
    assert counters(read(*swapped)) == MONITOR_EXPECTED


def test_a_number_beyond_float64_is_skipped() -> None:
    assert counters(read(*MONITOR[:-1], MONITOR[-1].replace("1980", "9" * 400)))["pclk [MHz], GPU 0"] == [
        (0, 1695.0)
    ]
