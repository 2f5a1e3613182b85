"""Work, time and attainable time of the calls, grouped by operator, shape, kernel, family of kernels or module.

Each row's device time is the sum of its events' durations, so that all rows and what no operator launched are all
device time. A call of several kernels shares its work among them by their time; copies and fills beside a kernel
get none.
"""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.grouping import Groups, group, in_step, launch_times
from torch_tb_profiler.analyses.shared.shapes import shapes
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.devices import device_ids
from torch_tb_profiler.model.kernels.families import family_codes
from torch_tb_profiler.model.kinds import Kind, event_ends, event_kinds
from torch_tb_profiler.model.modules import modules
from torch_tb_profiler.model.trace import Bool, Float64, Int32, Int64, Trace
from torch_tb_profiler.model.work.measured import measured_call_work, measured_event_work
from torch_tb_profiler.model.work.operator_work import operator_work
from torch_tb_profiler.model.work.ownership import work_owners
from torch_tb_profiler.model.work.roofline import RooflineTimes, roofline_times

GroupBy = Literal["operator", "shape", "kernel", "family", "module"]
"""operator; operator + input shapes; kernel; family of kernels; nn.Module of the call."""

OF_EVENTS = ("kernel", "family")
"""What groups device events, not calls."""


class Filter(msgspec.Struct, frozen=True):
    """Which work counts; "" and None are no filter."""

    step: str = ""
    device: int | None = None


class Items(msgspec.Struct, frozen=True):
    """What is grouped: calls, or device events where rows are kernels. Columns of length m; times in ns.

    call      position in the calls of `operator_work`, NO_CODE of an event that no operator launched
    event     row of the trace that stands for it
    flops, bytes, compute, memory, roof  float64, NaN is unknown
    busy      time in which any of its device events ran
    device    sum of their durations
    idle      how long its device had idled when it began
    """

    call: Int64
    event: Int32
    flops: Float64
    bytes: Float64
    compute: Float64
    memory: Float64
    roof: Float64
    busy: Int64
    device: Int64
    idle: Int64


class Table(msgspec.Struct, frozen=True):
    """Groups of items, and the device time that no operator launched (in `items` too where rows are kernels)."""

    items: Items
    groups: Groups
    unlinked_ns: int
    unlinked_calls: int


def roofline_table(trace: Trace, group_by: GroupBy, kept: Filter, given: str) -> Table:
    """Raises NotFoundError for an unknown step, UsageError for peaks that cannot be read."""
    done, reach = operator_work(trace), roofline_times(trace, given)
    calls = np.flatnonzero(kept_calls(trace, reach, kept))
    lost = kept_unlinked(trace, kept)
    length = int((event_ends(trace) - trace.events.start)[lost].sum())
    if group_by in OF_EVENTS:
        own = done.owners
        wanted = np.zeros(len(own.calls) + 1, np.bool_)
        wanted[calls] = True
        at = np.flatnonzero(wanted[own.call] | np.isin(own.events, lost))
        items = items_of_events(trace, at, given)
        codes = trace.events.name if group_by == "kernel" else family_codes(trace).astype(np.int32)
        keys = [codes[items.event]]
    else:
        rows = done.owners.calls[calls]
        items = items_of_calls(trace, calls, given)
        keys = {
            "operator": [trace.events.name[rows]],
            "shape": [trace.events.name[rows], shapes(trace)[rows]],
            "module": [modules(trace).code[rows]] if group_by == "module" else [],
        }[group_by]
    return Table(items, group(*keys), length, len(lost))


def kept_calls(trace: Trace, reach: RooflineTimes, kept: Filter) -> Bool:
    """bool[k]: which calls of `operator_work` a filter keeps; a call belongs to the step in which it was made."""
    rows = operator_work(trace).owners.calls
    keep = np.ones(len(rows), np.bool_)
    if kept.step:
        keep &= in_step(trace, trace.events.start[rows], kept.step)
    if kept.device is not None:
        keep &= reach.device == kept.device
    return keep


def kept_unlinked(trace: Trace, kept: Filter) -> Int32:
    """Device events that no operator launched and that a filter keeps, by their launch."""
    done = operator_work(trace)
    rows = done.owners.events[done.owners.call < 0]
    keep = np.ones(len(rows), np.bool_)
    if kept.step:
        keep &= in_step(trace, launch_times(trace, rows), kept.step)
    if kept.device is not None:
        keep &= device_ids(trace)[rows] == kept.device
    lost: Int32 = rows[keep]
    return lost


def items_of_calls(trace: Trace, calls: Int64, given: str) -> Items:
    """Calls as what is grouped: `calls` are positions in those of `operator_work`."""
    done, reach = operator_work(trace), roofline_times(trace, given)
    return Items(
        call=calls,
        event=done.owners.calls[calls],
        flops=done.flops[calls],
        bytes=done.bytes[calls],
        compute=reach.compute[calls],
        memory=reach.memory[calls],
        roof=reach.roofline[calls],
        busy=done.busy[calls],
        device=done.device[calls],
        idle=reach.idle_before[calls],
    )


def items_of_events(trace: Trace, at: Int64, given: str) -> Items:
    """Device events, positions `at` in those of `work_owners`, each with its share of its call."""
    done, reach = operator_work(trace), roofline_times(trace, given)
    call = done.owners.call[at].astype(np.int64)
    rows = done.owners.events[at]
    length = (event_ends(trace) - trace.events.start)[rows]
    of_flops, of_bytes = (shares[at] for shares in _event_shares(trace))
    # The last cell answers for what no operator launched.
    flops, moved, compute, memory = (
        np.append(values, np.nan)[call] * share
        for values, share in (
            (done.flops, of_flops),
            (done.bytes, of_bytes),
            (reach.compute, of_flops),
            (reach.memory, of_bytes),
        )
    )
    counted = measured_event_work(trace)
    if counted is not None:  # what no operator launched has what was counted for itself
        alone = call < 0
        flops = np.where(alone, counted.flops[at], flops)
        moved = np.where(alone, counted.bytes[at], moved)
        memory = np.where(alone, 1e9 * moved / _bandwidths(trace, reach)[rows], memory)
    return Items(
        call=call,
        event=rows,
        flops=flops,
        bytes=moved,
        compute=compute,
        memory=memory,
        roof=np.fmax(compute, memory),
        busy=length,
        device=length,
        idle=np.append(reach.idle_before, 0)[call],
    )


def _bandwidths(trace: Trace, reach: RooflineTimes) -> Float64:
    """float64[n]: bytes/s of the device of each event, NaN where that is not known."""
    device, bandwidth = device_ids(trace), np.full(len(trace), np.nan)
    for id_, peaks in reach.peaks.items():
        bandwidth[device == id_] = np.nan if peaks.memory is None else peaks.memory
    return bandwidth


@derived
def _event_shares(trace: Trace) -> tuple[Float64, Float64]:
    """(float64[m], float64[m]): of each device event the part of its call's FLOPs, and of its bytes.

    1 where no operator launched it.
    """
    own = work_owners(trace)
    owned = own.call >= 0
    rows = own.events[owned]
    length = (event_ends(trace) - trace.events.start)[rows]
    shares = np.ones(len(own.events))
    shares[owned] = _shares(event_kinds(trace)[rows] == Kind.KERNEL, own.call[owned], length, len(own.calls))
    counted, calls = measured_event_work(trace), measured_call_work(trace)
    if counted is None or calls is None:
        return shares, shares
    return (
        _parts(counted.flops, np.append(calls.flops, np.nan)[own.call], shares),
        _parts(counted.bytes, np.append(calls.bytes, np.nan)[own.call], shares),
    )


def _parts(counted: Float64, whole: Float64, shares: Float64) -> Float64:
    """`shares` but where a whole was counted, and more than nothing."""
    known = whole > 0
    return np.where(known, counted / np.where(known, whole, 1.0), shares)


def _shares(kernel: Bool, call: Int32, length: Int64, count: int) -> Float64:
    """float64[m]: of each event the part of its call's work; all events share where none is a kernel."""
    has_kernel = np.zeros(count, np.bool_)
    has_kernel[call[kernel]] = True
    works = kernel | ~has_kernel[call]
    time = np.bincount(call, np.where(works, length, 0), minlength=count)[call]
    number = np.bincount(call, works, minlength=count)[call]
    return np.where(works, np.where(time > 0, length / np.maximum(time, 1), 1 / np.maximum(number, 1)), 0.0)
