"""When the devices wait in the complete steps, and what the host does meanwhile.

host    |-- aten::add --|launch|   the gap ends 2 us after the launch: until then the host was late,
device  [ kernel ]    gap        [ kernel ]    as the gaps of each device have it
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from torch_tb_profiler.analyses.schedule.gaps import device_gaps
from torch_tb_profiler.base.intervals import NO_INTERVALS, Intervals, intersect, merge, subtract, union
from torch_tb_profiler.base.markers import is_anonymous_frame, is_training_mark
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.calls.links import device_launches
from torch_tb_profiler.model.calls.missing import missing_kernels_reason
from torch_tb_profiler.model.kinds import DEVICE_KINDS, HOST_KINDS, event_ends, rows_of_kind
from torch_tb_profiler.model.schedule.items import device_items
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import Int32, Int64, Trace, distinct_codes, name_mask

LONG_NS = 1_000_000
"""A stretch that the device waits for longer is not for the next launch but for what the host does before."""

MOST_STRETCHES = 200
"""The longest of them are looked into."""


@derived
def step_windows(trace: Trace) -> Intervals:
    """The complete steps, merged."""
    spans = steps(trace)
    return merge(spans.starts[spans.complete], spans.ends[spans.complete])


@derived
def device_busy(trace: Trace) -> Intervals:
    """When any device computes, copies or exchanges data."""
    rows = rows_of_kind(trace, *DEVICE_KINDS)
    return merge(trace.events.start[rows], event_ends(trace)[rows])


@derived
def idle(trace: Trace) -> Intervals:
    """Within the complete steps; nothing where no device is recorded, or kernels are missing."""
    busy = device_busy(trace)
    known = len(busy.starts) and missing_kernels_reason(trace) is None
    return subtract(step_windows(trace), busy) if known else NO_INTERVALS


@derived
def host_late(trace: Trace) -> Intervals:
    """Of the time in which no device works what passes before the host submits what a device waits for.

    Work without a recorded launch counts as submitted when it begins.
    """
    alone = idle(trace)
    # Where nothing follows on any device, nothing is late; what the host still does for long is its own affair.
    tail = alone.starts >= device_busy(trace).ends[-1:].max(initial=0)
    late = _only(alone, tail & (alone.ends - alone.starts > LONG_NS))
    for device in np.unique(device_items(trace).device).tolist():
        table = device_gaps(trace, device)
        until = np.where(table.thread >= 0, table.late_until, table.end)
        late = union(late, merge(table.begin, np.where(table.next >= 0, until, table.begin)))
    return intersect(alone, late)


@derived
def device_late(trace: Trace) -> Intervals:
    """Of the time in which no device works what passes although all that comes next is submitted.

    Where a device's next work has no recorded launch, or none follows, it does not count.
    """
    submitted = NO_INTERVALS
    for device in np.unique(device_items(trace).device).tolist():
        table = device_gaps(trace, device)
        known = (table.thread >= 0) & (table.next >= 0)
        submitted = union(submitted, merge(table.late_until[known], table.end[known]))
    return subtract(intersect(idle(trace), submitted), host_late(trace))


class Covering(msgspec.Struct, frozen=True):
    """A frame, annotation, operator or call that covers half of some stretches or more.

    during  these stretches; event: row of its longest occurrence
    """

    name: str
    during: Intervals
    event: int


def covering(trace: Trace, stretches: Intervals) -> list[Covering]:
    """The deepest slice that covers half of each stretch, by name, most time first; the longest stretches only."""
    by_name: dict[int, list[tuple[int, int]]] = {}
    for at, row in _deepest(trace, stretches):
        by_name.setdefault(int(trace.events.name[row]), []).append((at, row))
    named = []
    for code, pairs in by_name.items():
        of = np.array([at for at, _ in pairs])
        longest = max((row for _, row in pairs), key=lambda row: int(trace.events.duration[row]))
        during = merge(stretches.starts[of], stretches.ends[of])
        named.append(Covering(trace.strings[code], during, longest))
    return sorted(named, key=lambda each: -int((each.during.ends - each.during.starts).sum()))


def _deepest(trace: Trace, stretches: Intervals) -> Iterator[tuple[int, int]]:
    """(index of a stretch, row of the shortest slice of the launching threads that covers half of it)."""
    lengths = stretches.ends - stretches.starts
    longest = np.argsort(-lengths, kind="stable")[:MOST_STRETCHES]
    if len(longest) == 0:
        return
    rows = _slices(trace, int(lengths[longest].min()))
    start, finish = trace.events.start[rows], event_ends(trace)[rows]
    for at in longest.tolist():
        begin, end = int(stretches.starts[at]), int(stretches.ends[at])
        inside = np.minimum(finish, end) - np.maximum(start, begin)
        enough = np.flatnonzero(2 * inside >= end - begin)
        if len(enough):
            yield at, int(rows[enough[np.argmin((finish - start)[enough])]])


def _slices(trace: Trace, length: int) -> Int32:
    """Host slices of half this length on threads that launch; marks of the loop and what has no name are none."""
    rows = rows_of_kind(trace, *HOST_KINDS)
    named = name_mask(trace.strings, lambda text: not (is_training_mark(text) or is_anonymous_frame(text)))
    rows = rows[named[trace.events.name[rows]] & (2 * trace.events.duration[rows] >= length)]
    _, launch = device_launches(trace)
    threads = distinct_codes(trace.events.thread[launch[launch >= 0]])
    kept: Int32 = rows[np.isin(trace.events.thread[rows], threads)] if len(threads) else rows
    return kept


def long_stretches(stretches: Intervals) -> Intervals:
    """Those of more than `LONG_NS`."""
    return _only(stretches, stretches.ends - stretches.starts > LONG_NS)


def short_stretches(stretches: Intervals) -> Intervals:
    """Those of up to `LONG_NS`."""
    return _only(stretches, stretches.ends - stretches.starts <= LONG_NS)


def _only(stretches: Intervals, which: np.ndarray) -> Intervals:
    return Intervals(stretches.starts[which], stretches.ends[which])


def after(gaps: Intervals, call_starts: Int64, call_ends: Int64) -> tuple[Intervals, Int64]:
    """What of the gaps a blocking call can cause, and which call (index) did.

    A gap that begins while a call waits is caused by it for as long as the call had waited for the device: had it
    not, the host would have been ahead by that much.
    """
    order = np.argsort(call_starts, kind="stable")
    at = np.searchsorted(call_starts[order], gaps.starts, "right") - 1
    call = order[np.maximum(at, 0)]
    spanned = (at >= 0) & (call_ends[call] >= gaps.starts)
    waited = gaps.starts - call_starts[call]
    until = np.minimum(gaps.ends, gaps.starts + waited)
    kept = spanned & (until > gaps.starts)
    return Intervals(gaps.starts[kept], until[kept]), call[kept]
