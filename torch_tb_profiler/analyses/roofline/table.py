"""Work, time and attainable time of the calls, grouped by operator, shape, kernel, family of kernels or module.

Each row's device time is the sum of its events' durations, so that all rows and what no operator launched are all
device time. A call of several kernels shares its work among them by their time; copies and fills beside a kernel
get none.
"""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.grouping import Groups, group, input_shape_codes, launch_times, step_mask
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.devices import device_ids
from torch_tb_profiler.model.kernels.families import family_codes
from torch_tb_profiler.model.kinds import Kind, event_kinds, event_lengths
from torch_tb_profiler.model.modules import modules
from torch_tb_profiler.model.trace import Bool, Float64, Int32, Int64, Trace
from torch_tb_profiler.model.work.measured import measured_call_work, measured_event_work
from torch_tb_profiler.model.work.operator_work import operator_work
from torch_tb_profiler.model.work.ownership import work_owners
from torch_tb_profiler.model.work.roofline import RooflineTimes, roofline_times

GroupBy = Literal["operator", "shape", "kernel", "family", "module"]
"""operator; operator + input shapes; kernel; family of kernels; nn.Module of the call."""

EVENT_GROUPINGS = ("kernel", "family")
"""Groupings of device events instead of calls."""


class WorkFilter(msgspec.Struct, frozen=True):
    """Which work counts; "" and None don't filter."""

    step: str = ""
    device: int | None = None


class WorkItems(msgspec.Struct, frozen=True):
    """The work to group: calls, or device events where rows are kernels. Columns of length m; times in ns.

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


class RooflineTable(msgspec.Struct, frozen=True):
    """Groups of items, and the device time that no operator launched (in `items` too where rows are kernels)."""

    items: WorkItems
    groups: Groups
    unlinked_ns: int


def roofline_table(trace: Trace, group_by: GroupBy, chosen: WorkFilter, custom_peaks: str) -> RooflineTable:
    """Group the chosen work. Raises NotFoundError for an unknown step, UsageError for unreadable peaks."""
    work, reach = operator_work(trace), roofline_times(trace, custom_peaks)
    calls = np.flatnonzero(select_calls(trace, reach, chosen))
    lost = select_unlinked(trace, chosen)
    length = int(event_lengths(trace, lost).sum())
    if group_by in EVENT_GROUPINGS:
        own = work.owners
        wanted = np.zeros(len(own.calls) + 1, np.bool_)
        wanted[calls] = True
        at = np.flatnonzero(wanted[own.call] | np.isin(own.events, lost))
        items = items_of_events(trace, at, custom_peaks)
        codes = trace.events.name if group_by == "kernel" else family_codes(trace).astype(np.int32)
        keys = [codes[items.event]]
    else:
        rows = work.owners.calls[calls]
        items = items_of_calls(trace, calls, custom_peaks)
        name = work.owners.name[calls]
        keys = {
            "operator": [name],
            "shape": [name, input_shape_codes(trace)[rows], work.owners.captured[calls]],
            "module": [modules(trace).code[rows]] if group_by == "module" else [],
        }[group_by]
    return RooflineTable(items, group(*keys), length)


def select_calls(trace: Trace, reach: RooflineTimes, chosen: WorkFilter) -> Bool:
    """Return which calls of `operator_work` a filter selects, bool[k]; a call belongs to the step it is in."""
    rows = operator_work(trace).owners.calls
    keep = np.ones(len(rows), np.bool_)
    if chosen.step:
        keep &= step_mask(trace, call_times(trace), chosen.step)
    if chosen.device is not None:
        keep &= reach.device == chosen.device
    return keep


def call_times(trace: Trace) -> Int64:
    """Return when the host made each call, int64[k] ns; of an operator at capture, when it launched the graph."""
    owners = work_owners(trace)
    times: Int64 = trace.events.start[owners.calls].copy()
    captured = owners.captured >= 0
    times[captured] = launch_times(trace, owners.calls[captured])
    return times


def select_unlinked(trace: Trace, chosen: WorkFilter) -> Int32:
    """Return the selected device events that no operator launched; their launch decides the step."""
    work = operator_work(trace)
    rows = work.owners.events[work.owners.call < 0]
    keep = np.ones(len(rows), np.bool_)
    if chosen.step:
        keep &= step_mask(trace, launch_times(trace, rows), chosen.step)
    if chosen.device is not None:
        keep &= device_ids(trace)[rows] == chosen.device
    lost: Int32 = rows[keep]
    return lost


def items_of_calls(trace: Trace, calls: Int64, custom_peaks: str) -> WorkItems:
    """Return the work of calls; `calls` are positions in those of `operator_work`."""
    work, reach = operator_work(trace), roofline_times(trace, custom_peaks)
    return WorkItems(
        call=calls,
        event=work.owners.calls[calls],
        flops=work.flops[calls],
        bytes=work.bytes[calls],
        compute=reach.compute[calls],
        memory=reach.memory[calls],
        roof=reach.roofline[calls],
        busy=work.busy[calls],
        device=work.device[calls],
        idle=reach.idle_before[calls],
    )


def items_of_events(trace: Trace, at: Int64, custom_peaks: str) -> WorkItems:
    """Return the work of device events (positions `at` in those of `work_owners`), each with its call's share."""
    work, reach = operator_work(trace), roofline_times(trace, custom_peaks)
    call = work.owners.call[at].astype(np.int64)
    rows = work.owners.events[at]
    length = event_lengths(trace, rows)
    of_flops, of_bytes = (shares[at] for shares in _compute_event_shares(trace))
    # The last cell answers for what no operator launched.
    flops, moved, compute, memory = (
        np.append(values, np.nan)[call] * share
        for values, share in (
            (work.flops, of_flops),
            (work.bytes, of_bytes),
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
    return WorkItems(
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
    """Return the memory bandwidth of each event's device in bytes/s, float64[n]; NaN if unknown."""
    device, bandwidth = device_ids(trace), np.full(len(trace), np.nan)
    for id_, peaks in reach.peaks.items():
        bandwidth[device == id_] = np.nan if peaks.memory is None else peaks.memory
    return bandwidth


@derived
def _compute_event_shares(trace: Trace) -> tuple[Float64, Float64]:
    """Return each device event's share of its call's FLOPs and of its bytes, two float64[m].

    The share is 1 where no operator launched the event.
    """
    own = work_owners(trace)
    owned = own.call >= 0
    rows = own.events[owned]
    length = event_lengths(trace, rows)
    shares = np.ones(len(own.events))
    shares[owned] = _split_shares(event_kinds(trace)[rows] == Kind.KERNEL, own.call[owned], length, len(own.calls))
    counted, calls = measured_event_work(trace), measured_call_work(trace)
    if counted is None or calls is None:
        return shares, shares
    return (
        _measured_shares(counted.flops, np.append(calls.flops, np.nan)[own.call], shares),
        _measured_shares(counted.bytes, np.append(calls.bytes, np.nan)[own.call], shares),
    )


def _measured_shares(counted: Float64, total: Float64, shares: Float64) -> Float64:
    """Return measured shares where the call's total was measured and isn't 0, else `shares`."""
    known = total > 0
    return np.where(known, counted / np.where(known, total, 1.0), shares)


def _split_shares(kernel: Bool, call: Int32, length: Int64, count: int) -> Float64:
    """Return each event's share of its call's work, float64[m]; copies share only where no kernel runs."""
    has_kernel = np.zeros(count, np.bool_)
    has_kernel[call[kernel]] = True
    works = kernel | ~has_kernel[call]
    time = np.bincount(call, np.where(works, length, 0), minlength=count)[call]
    number = np.bincount(call, works, minlength=count)[call]
    return np.where(works, np.where(time > 0, length / np.maximum(time, 1), 1 / np.maximum(number, 1)), 0.0)
