"""Composer's lists of events: open ends, events that a cycle cuts, both clocks, ranks."""

from __future__ import annotations

import gzip
import io

import pytest

from tests.support.producers.composer import EPOCH, LOOP, Batch, content, cycle, merge_ranks
from tests.support.traces import read as read_events
from torch_tb_profiler.ingest import read_trace
from torch_tb_profiler.ingest.kineto.clock import QUARTER_NS
from torch_tb_profiler.model.kinds import Kind, rows_of_kind
from torch_tb_profiler.model.ranks import split_ranks, trace_rank
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.model.trainer import ClockSync, clock_sync

HANDLER = "callback/JSONTraceHandler/event/batch_end"


def read(data: bytes) -> Trace:
    return read_trace(io.BytesIO(data), size=len(data))


def slices(trace: Trace, name: str) -> list[tuple[int, int]]:
    """Return the slices as (start, duration) in ns."""
    rows = [row for row in rows_of_kind(trace, Kind.TRAINER) if trace.strings[trace.events.name[row]] == name]
    return [(int(trace.events.start[row]), int(trace.events.duration[row])) for row in rows]


@pytest.mark.parametrize("closed", [True, False])
def test_a_list_may_lack_its_closing_bracket(closed: bool) -> None:
    trace = read(content(cycle([Batch(60, 20, 15, 40), Batch(10, 5, 6, 12)], rank=3), closed=closed))
    assert (trace.producer, trace_rank(trace)) == ("Composer", 3)
    assert slices(trace, "event/dataloader") == [(0, 60_000), (100_000, 10_000)]
    assert slices(trace, "event/batch") == [(60_000, 40_000), (110_000, 12_000)]
    assert slices(trace, "event/backward") == [(80_000, 15_000), (115_000, 6_000)]


def test_events_cut_by_a_cycle_are_noted_and_not_drawn() -> None:
    trace = read(content(cycle([Batch()])))
    assert [(note.kind, note.severity, note.count) for note in trace.health] == [("trainer_cut", "info", 2)]
    assert slices(trace, HANDLER) == []


def test_a_second_cycle_ends_the_open_events_of_the_first() -> None:
    trace = read(content(cycle([Batch()]) + cycle([Batch()], first=1, start=EPOCH + 5_000)))
    assert slices(trace, HANDLER) == [(100_000, 4_900_000)]
    assert steps(trace).names == ("0", "1")


def test_an_end_ends_the_innermost_of_its_own_name() -> None:
    def event(ph: str, ts: int, name: str) -> dict[str, object]:
        return {"ph": ph, "name": name, "pid": 0, "tid": 1, "ts": ts, "cat": ""}

    trace = read_events(
        [
            event("B", 0, "event/fit"),
            event("B", 10, "event/batch"),
            event("E", 20, "event/iteration"),  # began before this cycle
            event("B", 30, "event/batch"),
            event("E", 40, "event/batch"),
            event("E", 50, "event/batch"),
        ]
    )
    assert slices(trace, "event/batch") == [(10_000, 40_000), (30_000, 10_000)]
    assert slices(trace, "event/fit") == []


def test_pytorch_events_with_times_since_the_quarter_lie_in_their_batch() -> None:
    """Time of an operator 70 µs after the trainer's first event, as torch writes it since 2024."""
    quarter_us = QUARTER_NS // 1000
    torch = {
        "ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 0, "tid": LOOP,
        "ts": (EPOCH + 70) % quarter_us, "dur": 5.5, "args": {},
    }  # fmt: skip
    trace = read(content([*cycle([Batch(60, 20, 15, 40)]), torch]))
    (row,) = rows_of_kind(trace, Kind.CPU_OP)
    assert (trace.events.start[row], trace.events.duration[row]) == (70_000, 5_500)
    assert "two_clocks" in {note.kind for note in trace.health}


def test_a_merged_list_is_a_trace_per_rank() -> None:
    ranks = [cycle([Batch(60)] * 2, rank=0), cycle([Batch(30)] * 3, rank=5, start=EPOCH + 900, sync=EPOCH + 800)]
    trace = read(gzip.compress(content(merge_ranks(*ranks))))
    parts = split_ranks(trace)
    assert {number: steps(part).names for number, part in parts.items()} == {0: ("0", "1"), 5: ("0", "1", "2")}
    assert [trace_rank(parts[number]) for number in (0, 5)] == [0, 5]
    # Rank 5 began 100 µs after the moment at which all met; the merge has moved it, so its note moves it no more.
    assert parts[5].trace_start_ns - parts[0].trace_start_ns == 100_000
    assert [clock_sync(part) for part in parts.values()] == [None, None]


def test_the_time_all_ranks_met_is_in_the_clock_of_the_file() -> None:
    assert clock_sync(read(content(cycle([Batch()], start=EPOCH + 900, sync=EPOCH + 800)))) == ClockSync(
        -100_000, 7000
    )
    without = [each for each in cycle([Batch()]) if "clock_sync" not in each["name"]]
    assert clock_sync(read(content(without))) is None
    two = [*cycle([Batch()]), *cycle([Batch()], first=1, start=EPOCH + 5_000)]
    assert clock_sync(read(content(two))) is None


def test_a_record_function_of_the_same_name_stays_an_annotation() -> None:
    event = {"ph": "X", "cat": "user_annotation", "name": "event/forward", "pid": 1, "tid": 1, "ts": 0, "dur": 9}
    assert len(rows_of_kind(read_events([event]), Kind.ANNOTATION)) == 1
