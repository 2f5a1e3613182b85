"""Totals of each row of the roofline table, and what limits it."""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.roofline.table import WorkItems
from torch_tb_profiler.analyses.shared.grouping import Groups
from torch_tb_profiler.model.trace import Float64, Int64, Trace
from torch_tb_profiler.model.work.operator_work import NOT_MODELED, operator_work
from torch_tb_profiler.model.work.roofline import roofline_times

Bound = Literal["compute", "memory", "latency", "launch", "communication", "unknown"]

MAX_LATENCY_BOUND_NS = 10_000
MAX_LATENCY_BOUND_EFFICIENCY = 0.25
"""A call shorter than this that takes over four times its roofline is too short to fill the device."""

MAX_LAUNCH_BOUND_NS = 50_000
"""A call that runs longer takes many times as long as its launch, so idle time before it has another cause."""

UNLINKED = "no recorded operator launched it"
FROM_HOST = "it copies to or from the host, so device memory isn't its limit"


class RooflineSums(msgspec.Struct, frozen=True):
    """Columns of g rows; times in ns, NaN if unknown for all calls.

    flops, bytes  sums over the calls of which they are known
    flops_ns, bytes_ns  the time of those calls
    roof, roof_ns  attainable time, and the time, of the calls of which it is known
    captured    FLOPs or bytes of some calls are from their inputs when a graph was captured
    unit, type  of the call that takes longest; None without arithmetic
    reasons     why something is unknown of the longest call of which it is; None if nothing is
    """

    event: Int64
    calls: Int64
    device: Int64
    busy: Int64
    flops: Float64
    flops_ns: Int64
    bytes: Float64
    bytes_ns: Int64
    roof: Float64
    roof_ns: Int64
    estimated: list[bool]
    measured: list[bool]
    captured: list[bool]
    unit: list[str | None]
    type: list[str | None]
    bound: list[Bound]
    reason: list[str | None]


def sum_rows(trace: Trace, items: WorkItems, groups: Groups, custom_peaks: str) -> RooflineSums:
    """Return the totals of every group of items."""
    work, reach = operator_work(trace), roofline_times(trace, custom_peaks)
    count = len(groups)
    known = {name: ~np.isnan(getattr(items, name)) for name in ("flops", "bytes", "roof", "compute", "memory")}

    def total(values: Float64 | Int64) -> Float64:
        return np.bincount(groups.which, values, minlength=count).astype(np.float64)

    def total_of_known(name: str) -> Float64:
        none = total(known[name]) == 0
        return np.where(none, np.nan, total(np.where(known[name], getattr(items, name), 0.0)))

    # The last cell answers for what no operator launched.
    communicates = np.append(reach.is_communication, False)[items.call]
    estimated, measured = (np.append(each, False)[items.call] for each in (work.estimated, work.measured))
    captured = np.append(work.owners.captured >= 0, False)[items.call] & (known["flops"] | known["bytes"])
    measured = measured | ((items.call < 0) & (known["flops"] | known["bytes"]))  # counted: nothing else tells it
    longest = _find_longest(groups.which, items.busy, count)
    both = known["compute"] & known["memory"]
    bound = _judge_bounds(
        total(items.busy),
        total(items.idle),
        groups.counts,
        total(np.where(communicates, items.busy, 0)),
        total(np.where(both, items.busy, 0)),
        total(np.where(both, items.compute, 0.0)),
        total(np.where(both, items.memory, 0.0)),
    )
    return RooflineSums(
        event=items.event[groups.first].astype(np.int64),
        calls=groups.counts,
        device=groups.sums(items.device),
        busy=groups.sums(items.busy),
        flops=total_of_known("flops"),
        flops_ns=groups.sums(np.where(known["flops"], items.busy, 0)),
        bytes=total_of_known("bytes"),
        bytes_ns=groups.sums(np.where(known["bytes"], items.busy, 0)),
        roof=total_of_known("roof"),
        roof_ns=groups.sums(np.where(known["roof"], items.busy, 0)),
        estimated=(total(estimated) > 0).tolist(),
        measured=(total(measured) > 0).tolist(),
        captured=(total(captured) > 0).tolist(),
        unit=[_unit(trace, int(at)) for at in items.call[longest]],
        type=[_type(trace, int(at)) for at in items.call[longest]],
        bound=bound,
        reason=_find_reasons(trace, items, groups, known["flops"] & known["bytes"], communicates, count),
    )


def _find_longest(which: Int64, busy: Int64, count: int) -> Int64:
    """Return the longest item of each group, int64[count]; the last of equals, -1 for an empty group."""
    longest_busy = np.full(count, -1, np.int64)
    np.maximum.at(longest_busy, which, busy)  # sorting would take several times as long
    at = np.flatnonzero(busy == longest_busy[which])
    longest = np.full(count, -1, np.int64)
    longest[which[at]] = at
    return longest


def _unit(trace: Trace, call: int) -> str | None:
    work = operator_work(trace)
    if call < 0 or work.type[call] < 0:
        return None
    return "matrix" if work.matrix[call] else "vector"


def _type(trace: Trace, call: int) -> str | None:
    work = operator_work(trace)
    return None if call < 0 or work.type[call] < 0 else work.types[work.type[call]]


def _judge_bounds(
    busy: Float64,
    idle: Float64,
    calls: Int64,
    communicates: Float64,
    both: Float64,
    compute: Float64,
    memory: Float64,
) -> list[Bound]:
    """Return what limits most of the time of each row; "unknown" if the roofline of under half of it is known."""
    bounds: list[Bound] = []
    for i in range(len(busy)):
        if 2 * communicates[i] > busy[i]:
            bounds.append("communication")
        elif 2 * both[i] <= busy[i]:
            bounds.append("unknown")
        elif busy[i] < idle[i] and busy[i] < MAX_LAUNCH_BOUND_NS * calls[i]:
            bounds.append("launch")
        elif (
            max(compute[i], memory[i]) < MAX_LATENCY_BOUND_EFFICIENCY * both[i]
            and busy[i] < MAX_LATENCY_BOUND_NS * calls[i]
        ):
            bounds.append("latency")
        else:
            bounds.append("compute" if compute[i] >= memory[i] else "memory")
    return bounds


def _find_reasons(
    trace: Trace, items: WorkItems, groups: Groups, known: np.ndarray, communicates: np.ndarray, count: int
) -> list[str | None]:
    work = operator_work(trace)
    reasons: list[str | None] = [None] * count
    missing = ~known | np.append(work.host, False)[items.call]
    at = np.flatnonzero(missing & ~communicates)
    longest = _find_longest(groups.which[at], items.busy[at], count)
    for group_number in np.flatnonzero(longest >= 0).tolist():
        call = int(items.call[at[longest[group_number]]])
        if call < 0:
            reasons[group_number] = UNLINKED
        elif work.reason[call] >= 0:
            reasons[group_number] = work.reasons[work.reason[call]]
        else:
            reasons[group_number] = FROM_HOST if work.host[call] else NOT_MODELED
    return reasons
