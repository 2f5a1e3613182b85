"""Collected columns to a finished Trace: begin/end pairs, the trace's start, doubtful times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.base.markers import is_composer_event
from torch_tb_profiler.ingest.kineto.clock import EPOCH_NS, absurd, quarter_offset
from torch_tb_profiler.ingest.kineto.columns import Columns
from torch_tb_profiler.ingest.progress import Step, no_step
from torch_tb_profiler.model.health import HealthLog, is_truncated
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Events, Trace

WINDOW_MARKERS = ("Record Window End", "Iteration Start: ")


def assemble(columns: Columns, metadata: Mapping[str, Any], health: HealthLog, step: Step = no_step) -> Trace:
    """Raises TraceError if there is not one event."""
    if columns.length == 0:
        if is_truncated(health):
            raise TraceError(
                "the file is cut off before the end of its first event",
                hint="copy it again, whole; or record again: the program may have stopped while it wrote the file",
            )
        raise TraceError(
            "the trace holds no events",
            hint="was the profiler stopped before the first active step of its `schedule`?",
        )
    events = columns.finish_events(step)
    strings = columns.strings.table()
    _pair_begin_end(events, strings, health)
    _join_clocks(events, metadata, health)
    origin = _origin(events, strings, health, step)
    timed = events.start != ABSENT
    events.start[timed] -= origin
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
    """Give each "B" event the time to its "E" on the same thread as its duration: the innermost one of the same
    name, of any name if the "E" has none."""
    rows = np.flatnonzero((events.phase == ord("B")) | (events.phase == ord("E")))
    rows = rows[events.start[rows] != ABSENT]
    if len(rows) == 0:
        return
    rows = rows[np.lexsort((rows, events.start[rows], events.thread[rows]))]
    nameless = next((code for code, text in enumerate(strings) if text == ""), NO_CODE)
    alone: list[int] = []
    begun = _Begun()
    thread = None
    for row in rows.tolist():
        if events.thread[row] != thread:
            alone += begun.rows()
            begun, thread = _Begun(), events.thread[row]
        name = int(events.name[row])
        if events.phase[row] == ord("B"):
            begun.add(row, name)
        elif (begin := begun.end(None if name in (nameless, NO_CODE) else name)) is not None:
            events.duration[begin] = events.start[row] - events.start[begin]
        else:
            alone.append(row)
    alone += begun.rows()
    names = [strings[events.name[row]] for row in alone if events.name[row] != NO_CODE]
    cut = sum(map(is_composer_event, names))
    if cut:
        message = "events of the trainer began before this cycle of its profiler or end after it; not drawn"
        health.add("trainer_cut", "info", message, count=cut)
    if len(alone) > cut:
        message = "begin or end events without their partner"
        health.add("unmatched_begin_end", "warning", message, count=len(alone) - cut)


class _Begun:
    """The events of a thread that have begun and not yet ended, by name."""

    def __init__(self) -> None:
        self._open: dict[int, int] = {}
        self._by_name: dict[int, list[int]] = {}

    def add(self, row: int, name: int) -> None:
        self._open[row] = name
        self._by_name.setdefault(name, []).append(row)

    def end(self, name: int | None) -> int | None:
        """The one that an end of this name ends, or one without a name; None if there is none."""
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
    """Bring the events of a merged file to the epoch where others are (`quarter_offset`)."""
    if metadata.get("baseTimeNanoseconds"):
        return
    if events.start.max(initial=0) <= EPOCH_NS:
        return  # none of them counts from the epoch
    rows = np.flatnonzero((events.start != ABSENT) & (events.phase != ord("M")))
    lacking, offset = quarter_offset(events.start[rows])
    if lacking.any():
        events.start[rows[lacking]] += offset
        message = "times count from another origin than the rest of the file; moved to the clock of the rest"
        health.add("two_clocks", "info", message, count=int(lacking.sum()))


def _origin(events: Events, strings: list[str], health: HealthLog, step: Step) -> int:
    """The earliest time that is not metadata, a profiler window marker, or absurd; notes what is doubtful."""
    timed = events.start != ABSENT
    slices = events.phase == ord("X")
    _note(health, slices & ~timed, "no_time", "error", "slices without a time; not drawn")
    _note(health, slices & (events.duration == ABSENT), "no_duration", "warning", "slices without a duration")
    negative = slices & (events.duration < 0) & (events.duration != ABSENT)
    _note(health, negative, "negative_duration", "warning", "slices with a negative duration count as empty")
    _note(health, slices & (events.name < 0), "no_name", "warning", "slices without a name")
    _note(health, slices & (events.category < 0), "no_category", "info", "slices without a category")
    step()
    counted = timed & (events.phase != ord("M")) & ~_is_window_marker(events, strings)
    starts, durations = events.start, events.duration
    if not counted.all():
        starts, durations = starts[counted], durations[counted]
    if len(starts) == 0:
        return int(events.start[timed].min()) if timed.any() else 0
    step()
    wrong = absurd(starts, durations)
    step()
    if wrong.any():
        health.add(
            "absurd_time",
            "warning",
            "times or durations more than a week away from the rest",
            count=int(wrong.sum()),
        )
        if not wrong.all():
            starts = starts[~wrong]
    return int(starts.min())


def _is_window_marker(events: Events, strings: list[str]) -> Bool:
    markers = [code for code, text in enumerate(strings) if text.startswith(WINDOW_MARKERS)]
    return np.isin(events.name, np.array(markers, np.int32))


def _note(health: HealthLog, which: Bool, kind: str, severity: Any, message: str) -> None:
    count = int(which.sum())
    if count:
        health.add(kind, severity, message, count=count)
