"""Turn collected columns into a Trace: pair begin and end events, find the trace's start, note doubtful times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.base.markers import is_composer_event
from torch_tb_profiler.ingest.kineto.clock import EPOCH_NS, LATEST, is_absurd_time, may_be_absurd, quarter_offset
from torch_tb_profiler.ingest.kineto.columns import EventColumns
from torch_tb_profiler.ingest.runtime import ReportStep, ignore_step
from torch_tb_profiler.model.health import HealthLog, is_truncated
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Events, Trace

WINDOW_MARKERS = ("Record Window End", "Iteration Start: ")
"""Prefixes of the names of events that mark the recording and may lie outside it."""

_FEW_MARKERS = 8
"""Most names that are looked for one by one, each in a tenth of the time of looking for all."""


def assemble(
    columns: EventColumns, metadata: Mapping[str, Any], health: HealthLog, step: ReportStep = ignore_step
) -> Trace:
    """Return the trace of all collected events. Raises TraceError if there are none."""
    if columns.length == 0:
        if is_truncated(health):
            raise TraceError(
                "the file is truncated inside its first event",
                hint="copy the file again, or record again: the job may have ended while writing it",
            )
        raise TraceError(
            "the trace has no events",
            hint="was the profiler stopped before the first active step of its `schedule`?",
        )
    events = columns.finish_events(step)
    strings = columns.strings.table()
    _pair_begin_end(events, strings, health)
    _join_clocks(events, metadata, health)
    origin = _origin(events, strings, health, step)
    timed = events.start != ABSENT
    np.subtract(events.start, origin, out=events.start, where=timed)
    base = metadata.get("baseTimeNanoseconds")
    return Trace(
        events=events,
        strings=strings,
        threads=columns.finish_threads(),
        text_ids=columns.text_ids.table(),
        args=columns.finish_args(step),
        metadata=dict(metadata),
        trace_start_ns=int(origin),
        base_ns=base if isinstance(base, int) and not isinstance(base, bool) else 0,
        health=health.notes(),
    )


def _pair_begin_end(events: Events, strings: Sequence[str], health: HealthLog) -> None:
    """Set the duration of each "B" event to the time until its "E" on the same thread.

    An "E" ends the innermost open event of its name, or the innermost one of any name if it has none.
    """
    rows = np.flatnonzero((events.phase == ord("B")) | (events.phase == ord("E")))
    rows = rows[events.start[rows] != ABSENT]
    if len(rows) == 0:
        return
    rows = rows[np.lexsort((rows, events.start[rows], events.thread[rows]))]
    nameless = next((code for code, text in enumerate(strings) if text == ""), NO_CODE)
    unpaired: list[int] = []
    open_events = _OpenEvents()
    thread = None
    for row in rows.tolist():
        if events.thread[row] != thread:
            unpaired += open_events.rows()
            open_events, thread = _OpenEvents(), events.thread[row]
        name = int(events.name[row])
        if events.phase[row] == ord("B"):
            open_events.add(row, name)
        elif (begin := open_events.end(None if name in (nameless, NO_CODE) else name)) is not None:
            events.duration[begin] = events.start[row] - events.start[begin]
        else:
            unpaired.append(row)
    unpaired += open_events.rows()
    names = [strings[events.name[row]] for row in unpaired if events.name[row] != NO_CODE]
    cut_by_cycle = sum(map(is_composer_event, names))
    if cut_by_cycle:
        message = "trainer events that cross a border of this profiling cycle; not drawn"
        health.add("trainer_cut", "info", message, count=cut_by_cycle)
    if len(unpaired) > cut_by_cycle:
        message = "begin events without an end, or end events without a begin"
        health.add("unmatched_begin_end", "warning", message, count=len(unpaired) - cut_by_cycle)


class _OpenEvents:
    """The events of a thread that have started and not ended yet, by name."""

    def __init__(self) -> None:
        self._open: dict[int, int] = {}
        self._by_name: dict[int, list[int]] = {}

    def add(self, row: int, name: int) -> None:
        self._open[row] = name
        self._by_name.setdefault(name, []).append(row)

    def end(self, name: int | None) -> int | None:
        """Close and return the innermost open row of this name (None: any name), or None if there is none."""
        if name is None and self._open:
            name = self._open[next(reversed(self._open))]
        rows = None if name is None else self._by_name.get(name)
        if not rows:
            return None
        del self._open[rows[-1]]
        return rows.pop()

    def rows(self) -> list[int]:
        return list(self._open)


def _join_clocks(events: Events, metadata: Mapping[str, Any], health: HealthLog) -> None:
    """Move events of a merged file that count from a quarter to the epoch of the others (`quarter_offset`)."""
    if metadata.get("baseTimeNanoseconds"):
        return
    if events.start.max(initial=0) <= EPOCH_NS:
        return  # no event counts from the epoch
    rows = np.flatnonzero((events.start != ABSENT) & (events.phase != ord("M")))
    lacking, offset = quarter_offset(events.start[rows])
    if lacking.any():
        events.start[rows[lacking]] += offset
        message = "times with another origin than the rest of the file; moved to the clock of the rest"
        health.add("two_clocks", "info", message, count=int(lacking.sum()))


def _origin(events: Events, strings: list[str], health: HealthLog, step: ReportStep) -> int:
    """Return the earliest time, without metadata, window markers and outliers; note doubtful times."""
    timed = events.start != ABSENT
    slices = events.phase == ord("X")
    _note_rows(health, slices & ~timed, "no_time", "error", "slices without a start time; not drawn")
    negative = events.duration < 0  # ABSENT, too
    negative &= slices
    if negative.any():
        absent = events.duration == ABSENT
        _note_rows(health, negative & absent, "no_duration", "warning", "slices without a duration")
        message = "slices with a negative duration count as empty"
        _note_rows(health, negative & ~absent, "negative_duration", "warning", message)
    _note_rows(health, slices & (events.name < 0), "no_name", "warning", "slices without a name")
    _note_rows(health, slices & (events.category < 0), "no_category", "info", "slices without a category")
    step()
    counts = timed & (events.phase != ord("M")) & ~_is_window_marker(events, strings)
    if not counts.any():
        return int(events.start[timed].min()) if timed.any() else 0
    step()
    if not may_be_absurd(events.start, events.duration, counts):
        return int(events.start.min(where=counts, initial=LATEST))
    starts, durations = events.start[counts], events.duration[counts]
    outliers = is_absurd_time(starts, durations)
    step()
    if outliers.any():
        health.add(
            "absurd_time",
            "warning",
            "times or durations more than a week away from the rest",
            count=int(outliers.sum()),
        )
        if not outliers.all():
            starts = starts[~outliers]
    return int(starts.min())


def _is_window_marker(events: Events, strings: list[str]) -> Bool:
    markers = [code for code, text in enumerate(strings) if text.startswith(WINDOW_MARKERS)]
    if len(markers) > _FEW_MARKERS:
        return np.isin(events.name, np.array(markers, np.int32))
    which: Bool = np.zeros(len(events.name), np.bool_)
    for code in markers:
        which |= events.name == code
    return which


def _note_rows(health: HealthLog, which: Bool, kind: str, severity: Any, message: str) -> None:
    count = int(np.count_nonzero(which))
    if count:
        health.add(kind, severity, message, count=count)
