"""Collected columns to a finished Trace: begin/end pairs, the trace's start, doubtful times."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest.kineto.clock import absurd, quarter_offset
from torch_tb_profiler.ingest.kineto.columns import Columns
from torch_tb_profiler.model.health import HealthLog
from torch_tb_profiler.model.trace import ABSENT, Bool, Events, Trace

WINDOW_MARKERS = ("Record Window End", "Iteration Start: ")


def assemble(columns: Columns, metadata: Mapping[str, Any], health: HealthLog) -> Trace:
    """Raises TraceError if there is not one event."""
    if columns.length == 0:
        raise TraceError(
            "the trace holds no events",
            hint="was the profiler stopped before the first active step of its `schedule`?",
        )
    events = columns.finish_events()
    strings = columns.strings.table()
    _pair_begin_end(events, health)
    _join_clocks(events, metadata, health)
    origin = _origin(events, strings, health)
    timed = events.start != ABSENT
    events.start[timed] -= origin
    base = metadata.get("baseTimeNanoseconds")
    return Trace(
        events=events,
        strings=strings,
        threads=columns.finish_threads(),
        text_ids=columns.text_ids.table(),
        args=columns.finish_args(),
        metadata=dict(metadata),
        trace_start_ns=int(origin),
        base_ns=base if isinstance(base, int) and not isinstance(base, bool) else 0,
        health=health.notes(),
    )


def _pair_begin_end(events: Events, health: HealthLog) -> None:
    """Give each "B" event the time to its "E" on the same thread (innermost first) as its duration."""
    rows = np.flatnonzero((events.phase == ord("B")) | (events.phase == ord("E")))
    rows = rows[events.start[rows] != ABSENT]
    if len(rows) == 0:
        return
    rows = rows[np.lexsort((rows, events.start[rows], events.thread[rows]))]
    unmatched = 0
    open_rows: list[int] = []
    thread = None
    for row in rows.tolist():
        if events.thread[row] != thread:
            unmatched += len(open_rows)
            open_rows, thread = [], events.thread[row]
        if events.phase[row] == ord("B"):
            open_rows.append(row)
        elif open_rows:
            begin = open_rows.pop()
            events.duration[begin] = events.start[row] - events.start[begin]
        else:
            unmatched += 1
    unmatched += len(open_rows)
    if unmatched:
        health.add("unmatched_begin_end", "warning", "begin or end events without their partner", count=unmatched)


def _join_clocks(events: Events, metadata: Mapping[str, Any], health: HealthLog) -> None:
    """Bring the events of a merged file to the epoch where others are (`quarter_offset`)."""
    if metadata.get("baseTimeNanoseconds"):
        return
    rows = np.flatnonzero((events.start != ABSENT) & (events.phase != ord("M")))
    lacking, offset = quarter_offset(events.start[rows])
    if lacking.any():
        events.start[rows[lacking]] += offset
        message = "times count from another origin than the rest of the file; moved to the clock of the rest"
        health.add("two_clocks", "info", message, count=int(lacking.sum()))


def _origin(events: Events, strings: list[str], health: HealthLog) -> int:
    """The earliest time that is not metadata, a profiler window marker, or absurd; notes what is doubtful."""
    timed = events.start != ABSENT
    slices = events.phase == ord("X")
    _note(health, slices & ~timed, "no_time", "error", "slices without a time; not drawn")
    _note(health, slices & (events.duration == ABSENT), "no_duration", "warning", "slices without a duration")
    negative = slices & (events.duration < 0) & (events.duration != ABSENT)
    _note(health, negative, "negative_duration", "warning", "slices with a negative duration count as empty")
    _note(health, slices & (events.name < 0), "no_name", "warning", "slices without a name")
    _note(health, slices & (events.category < 0), "no_category", "info", "slices without a category")
    rows = np.flatnonzero(timed & (events.phase != ord("M")) & ~_is_window_marker(events, strings))
    if len(rows) == 0:
        return int(events.start[timed].min()) if timed.any() else 0
    wrong = absurd(events.start[rows], events.duration[rows])
    if wrong.any():
        health.add(
            "absurd_time",
            "warning",
            "times or durations more than a week away from the rest",
            count=int(wrong.sum()),
        )
    return int(events.start[rows[~wrong]].min()) if not wrong.all() else int(events.start[rows].min())


def _is_window_marker(events: Events, strings: list[str]) -> Bool:
    markers = [code for code, text in enumerate(strings) if text.startswith(WINDOW_MARKERS)]
    return np.isin(events.name, np.array(markers, np.int32))


def _note(health: HealthLog, which: Bool, kind: str, severity: Any, message: str) -> None:
    count = int(which.sum())
    if count:
        health.add(kind, severity, message, count=count)
