"""The communication operations of one rank as a table."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from torch_tb_profiler.analyses.distributed.reduction.stalls import stalls
from torch_tb_profiler.base.intervals import Intervals, OwnedIntervals, covered_time
from torch_tb_profiler.model.communication.collectives import Collectives
from torch_tb_profiler.model.communication.names import ALL_TO_ALL
from torch_tb_profiler.model.steps import Steps
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Float64, Int64, Trace

OPERATION = np.dtype(
    [
        ("group", "<i4"), ("step", "<i4"), ("collective", "<i4"), ("backend", "<i4"), ("dtype", "<i4"),
        ("timing", "i1"), ("sequence", "<i8"), ("source", "<i8"), ("target", "<i8"),
        ("issue", "<i8"), ("start", "<i8"), ("end", "<i8"), ("latency", "<i8"), ("exposed", "<i8"),
        ("stall", "<i8"), ("bytes_in", "<i8"), ("bytes_out", "<i8"), ("message", "<i8"), ("bus", "<f8"),
        ("window", "<i8"),
    ]
)  # fmt: skip
"""One communication operation, as `model.communication.collectives.Collectives` has it, and in addition:

step       position in the summary's steps of the one in which the host issued it, NO_CODE outside of them
latency    ns in which it runs; exposed: the part of it that no computation hides; ABSENT without timing
stall      ns before its end in which the computation waited for it: nothing computes until it ends; else 0
message    bytes that bandwidth refers to; bus: those that cross the slowest link by NCCL's factors (NaN: unknown)
window     ns between the start of the rank's previous operation and its own; of the first, since the first step
           began; ABSENT without timing
"""

Operations = npt.NDArray[np.void]


def operation_table(trace: Trace, operations: Collectives, spans: Steps, computation: Intervals) -> Operations:
    """An array of OPERATION."""
    table = np.zeros(len(operations), OPERATION)
    same = (
        "group", "collective", "backend", "dtype", "timing", "sequence", "source", "target",
        "issue", "start", "end", "bytes_in", "bytes_out",
    )  # fmt: skip
    for name in same:
        table[name] = getattr(operations, name)
    table["step"] = _step_of(operations, spans)
    timed = operations.start != ABSENT
    latency = operations.parts.totals(len(operations))
    exposed = latency - hidden_times(operations.parts, computation, len(operations))
    table["latency"] = np.where(timed, latency, ABSENT)
    table["exposed"] = np.where(timed, exposed, ABSENT)
    table["stall"] = stalls(trace, operations, computation)
    table["message"], table["bus"] = _messages(operations)
    known, begins, finishes = windows_of(operations, spans)
    table["window"] = ABSENT
    table["window"][known] = finishes - begins
    return table


def hidden_times(parts: OwnedIntervals, computation: Intervals, count: int) -> Int64:
    """int64[count] ns of each owner that the computation covers."""
    hidden = np.zeros(count, np.int64)
    np.add.at(hidden, parts.owner, covered_time(computation, parts.starts, parts.ends))
    return hidden


def _step_of(operations: Collectives, spans: Steps) -> Int64:
    """The step in which the host issued each operation; where that is not recorded, in which the operation ran."""
    issued = operations.issue != ABSENT
    on_host = _inside(operations.issue, spans.host_starts, spans.host_ends)
    return np.where(issued, on_host, _inside(operations.start, spans.starts, spans.ends))


def _inside(times: Int64, starts: Int64, ends: Int64) -> Int64:
    if len(starts) == 0:
        return np.full(len(times), NO_CODE)
    at = np.searchsorted(starts, times, "right") - 1
    return np.where((at >= 0) & (times <= ends[at]), at, NO_CODE)


def _messages(operations: Collectives) -> tuple[Int64, Float64]:
    """(message bytes, bytes over the slowest link) by NCCL's conventions; ABSENT and NaN where unknown.

    https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
    """
    sizes = np.array([group.size or 0 for group in operations.groups] or [0], np.float64)[operations.group]
    names = np.array([*operations.names, ""])[operations.collective] if len(operations) else np.empty(0, "U1")
    bytes_in, bytes_out = operations.bytes_in, operations.bytes_out
    by_size = np.where((bytes_in != ABSENT) & (sizes > 0), bytes_in * sizes.astype(np.int64), ABSENT)
    gathered = np.where(bytes_out != ABSENT, bytes_out, by_size)
    put = np.where(names == "recv", np.maximum(bytes_in, bytes_out), bytes_in)
    # Of a gather what the root gets, which the other ranks do not record.
    message = np.where(names == "all_gather", gathered, np.where(names == "gather", by_size, put))
    message = np.where((names == "barrier") | (message < 0), ABSENT, message)
    bus = np.where(message == ABSENT, np.nan, message * _bus_factors(names, sizes))
    return message, np.where(operations.egress_bytes != ABSENT, operations.egress_bytes, bus)


def _bus_factors(names: npt.NDArray[np.str_], sizes: Float64) -> Float64:
    """What part of the message crosses the slowest link, NaN where unknown."""
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.where(sizes > 0, (sizes - 1) / sizes, np.nan)
    factors = np.full(len(names), np.nan)
    for collectives, value in (
        (("all_reduce",), 2 * spread),
        (("all_gather", "reduce_scatter", "gather", "scatter", *ALL_TO_ALL), spread),
        (("broadcast", "reduce", "send", "recv"), np.ones(len(names))),
    ):
        which = np.isin(names, collectives)
        factors[which] = value[which]
    return factors


def windows_of(operations: Collectives, spans: Steps) -> tuple[Int64, Int64, Int64]:
    """(rows, begins, finishes) of the times between the start of the operation before and its own, of all that
    have a time."""
    known = np.flatnonzero(operations.start != ABSENT)
    finish = operations.start[known]
    begin = np.append(spans.starts.min(initial=int(finish[0])) if len(known) else [], finish[:-1]).astype(np.int64)
    return known, np.minimum(begin, finish), finish
