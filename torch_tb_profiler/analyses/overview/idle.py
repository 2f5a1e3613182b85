"""When the devices are idle in the typical steps, and for how much of that the host is late.

host    |-- aten::add --|launch|   the gap ends 2 us after the launch: until then the host was late,
device  [ kernel ]    gap        [ kernel ]    as the gaps of each device have it
"""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.analyses.schedule.causes import Cause
from torch_tb_profiler.analyses.schedule.gaps import MAX_QUEUE_GAP_NS, device_gaps
from torch_tb_profiler.analyses.shared.typical_steps import typical_windows
from torch_tb_profiler.base.arrays import distinct_numbers, search_sorted
from torch_tb_profiler.base.intervals import NO_INTERVALS, Intervals, intersect, merge, subtract, union
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.calls.calltree import call_tree
from torch_tb_profiler.model.calls.missing import missing_kernels_reason
from torch_tb_profiler.model.kinds import DEVICE_KINDS, Kind, event_intervals, rows_of_kind, step_marks
from torch_tb_profiler.model.schedule.items import clock_shift_ns, device_items
from torch_tb_profiler.model.trace import Bool, Int32, Int64, Trace

LONG_STRETCH_NS = 1_000_000
"""A longer idle stretch isn't about the next launch, but about what the host does before it."""


@derived
def device_busy(trace: Trace) -> Intervals:
    """Return when any device computes, copies or communicates."""
    rows = rows_of_kind(trace, *DEVICE_KINDS)
    return event_intervals(trace, rows)


@derived
def idle_times(trace: Trace) -> Intervals:
    """Return when all devices are idle in typical steps; empty if no device is recorded or kernels are missing."""
    busy = device_busy(trace)
    is_known = len(busy.starts) and missing_kernels_reason(trace) is None
    return subtract(typical_windows(trace), busy) if is_known else NO_INTERVALS


@derived
def host_late_times(trace: Trace) -> Intervals:
    """Return the idle time until the host submits what a device waits for.

    Work without a recorded launch counts as submitted when it begins.
    """
    idle = idle_times(trace)
    # Where nothing follows on any device, the host isn't late; but long stretches after that are its own work.
    is_tail = idle.starts >= device_busy(trace).ends[-1:].max(initial=0)
    late = _select(idle, is_tail & (idle.ends - idle.starts > LONG_STRETCH_NS))
    for device in distinct_numbers(device_items(trace).device):
        table = device_gaps(trace, device)
        until = np.where(table.thread >= 0, table.late_until, table.end)
        late = union(late, merge(table.begin, np.where(table.next >= 0, until, table.begin)))
    return intersect(idle, late)


def late_times_of(trace: Trace, thread: int) -> Intervals:
    """Return the part of `host_late_times` that ends with what this thread submits."""
    late = NO_INTERVALS
    for device in distinct_numbers(device_items(trace).device):
        table = device_gaps(trace, device)
        mine = (table.thread == thread) & (table.next >= 0)
        late = union(late, merge(table.begin[mine], table.late_until[mine]))
    return intersect(host_late_times(trace), late)


@derived
def long_unrecorded_times(trace: Trace) -> Intervals:
    """Return the idle times of over LONG_STRETCH_NS in which the thread that launches next records nothing."""
    from torch_tb_profiler.analyses.schedule.segments import idle_segments  # few traces need it

    found = NO_INTERVALS
    for device in distinct_numbers(device_items(trace).device):
        idle = idle_segments(trace, device)
        mine = (idle.cause == Cause.UNRECORDED) & (idle.length > LONG_STRETCH_NS)
        found = union(found, merge(idle.begin[mine], idle.end[mine]))
    return found


def late_times_without_records(trace: Trace) -> Intervals:
    """Return when a device waits for a thread that records nothing but the step.

    `long_unrecorded_times` finds no more, as it also looks at the threads that this one waits for; this is
    quicker.
    """
    rows, shift = _outermost_records(trace), clock_shift_ns(trace)
    thread_of_row, found = trace.events.thread.take(rows), NO_INTERVALS
    for device in distinct_numbers(device_items(trace).device):
        table = device_gaps(trace, device)
        for thread in distinct_numbers(table.thread):
            mine = table.thread == thread
            calls = event_intervals(trace, rows[thread_of_row == thread])
            late = merge(table.begin[mine], table.late_until[mine])
            found = union(found, subtract(late, Intervals(calls.starts - shift, calls.ends - shift)))
    return found


def _outermost_records(trace: Trace) -> Int32:
    """Return the outermost slices of the host but steps and functions, between which nothing else is recorded."""
    tree = call_tree(trace)
    says_nothing = np.zeros(len(trace) + 1, np.bool_)
    says_nothing[-1] = True  # no slice around it
    says_nothing[rows_of_kind(trace, Kind.PYTHON)] = True
    says_nothing[step_marks(trace)] = True
    rows = tree.rows[says_nothing.take(tree.parent.take(tree.rows))]
    return rows[~says_nothing.take(rows)]


@derived
def submitted_idle_times(trace: Trace) -> Intervals:
    """Return the idle time in which all that comes next is already submitted.

    Where a device's next work has no recorded launch, or none follows, the time doesn't count. Neither does the
    latency of a launch in the gap: an earlier launch would hide it.
    """
    submitted = NO_INTERVALS
    for device in distinct_numbers(device_items(trace).device):
        table = device_gaps(trace, device)
        is_known = (table.thread >= 0) & (table.next >= 0)
        is_known &= (table.late_until == table.begin) | (table.end - table.late_until > MAX_QUEUE_GAP_NS)
        submitted = union(submitted, merge(table.late_until[is_known], table.end[is_known]))
    return subtract(intersect(idle_times(trace), submitted), host_late_times(trace))


def long_stretches(stretches: Intervals) -> Intervals:
    """Return the stretches longer than LONG_STRETCH_NS."""
    return _select(stretches, stretches.ends - stretches.starts > LONG_STRETCH_NS)


def short_stretches(stretches: Intervals) -> Intervals:
    """Return the stretches of up to LONG_STRETCH_NS."""
    return _select(stretches, stretches.ends - stretches.starts <= LONG_STRETCH_NS)


def _select(stretches: Intervals, mask: Bool) -> Intervals:
    return Intervals(stretches.starts[mask], stretches.ends[mask])


def caused_by_calls(gaps: Intervals, call_starts: Int64, call_ends: Int64) -> tuple[Intervals, Int64]:
    """Return the parts of the gaps that blocking calls can cause, and the index of the call for each.

    A gap that begins while a call waits is caused by it for as long as the call had waited for the device: had it
    not, the host would have been ahead by that much.
    """
    order = np.argsort(call_starts, kind="stable")
    position = search_sorted(call_starts[order], gaps.starts, "right") - 1
    call = order[np.maximum(position, 0)]
    is_spanned = (position >= 0) & (call_ends[call] >= gaps.starts)
    waited = gaps.starts - call_starts[call]
    until = np.minimum(gaps.ends, gaps.starts + waited)
    selected = is_spanned & (until > gaps.starts)
    return Intervals(gaps.starts[selected], until[selected]), call[selected]
