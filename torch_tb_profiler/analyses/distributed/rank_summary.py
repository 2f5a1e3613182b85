"""What one rank's trace contributes to the view of its job: small, so that a job of N ranks costs N of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt

from torch_tb_profiler.analyses.distributed.meanwhile import Top, top_host, top_kernels, window_categories
from torch_tb_profiler.analyses.shared.breakdown import CATEGORIES, role_intervals
from torch_tb_profiler.base.intervals import Intervals, Owned, covered, intersect, merge_owned
from torch_tb_profiler.model.communication.collectives import Collectives, collectives
from torch_tb_profiler.model.communication.groups import ProcessGroup
from torch_tb_profiler.model.communication.names import ALL_TO_ALL
from torch_tb_profiler.model.devices import DeviceInfo, devices
from torch_tb_profiler.model.kinds import HOST, Kind, of_kind
from torch_tb_profiler.model.ranks import rank
from torch_tb_profiler.model.steps import Steps, steps
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Int32, Int64, Trace, distinct

HOST_NAMES, KERNEL_NAMES = 5, 3
"""How many names of host and device work are kept of what came before a collective."""

LONGEST_NAME = 300

OPERATION = np.dtype(
    [
        ("event", "<i4"), ("call", "<i4"), ("group", "<i4"), ("step", "<i4"),
        ("collective", "<i4"), ("backend", "<i4"), ("dtype", "<i4"), ("timing", "i1"),
        ("sequence", "<i8"), ("source", "<i8"), ("target", "<i8"),
        ("issue", "<i8"), ("start", "<i8"), ("end", "<i8"), ("busy", "<i8"), ("exposed", "<i8"),
        ("bytes_in", "<i8"), ("bytes_out", "<i8"), ("message", "<i8"), ("bus", "<f8"),
        ("window", "<i8"), ("categories", "<i8", (len(CATEGORIES),)),
        ("host", "<i4", (HOST_NAMES,)), ("host_ns", "<i8", (HOST_NAMES,)),
        ("kernels", "<i4", (KERNEL_NAMES,)), ("kernel_ns", "<i8", (KERNEL_NAMES,)),
    ]
)  # fmt: skip
"""One communication operation, as `model.collectives.Collectives` has it, and beside that:

step       position in the summary's steps of the one in which the host issued it, NO_CODE outside of them
busy       ns in which it runs; exposed: the part of it that no computation hides; ABSENT without timing
message    bytes that bandwidth is told for, bus: those that cross the slowest link by NCCL's factors (NaN unknown)
window     ns between the end of the group's previous operation and its start, ABSENT for the first of a group
categories, host, host_ns, kernels, kernel_ns  what the rank did in that window; names are codes
"""

Operations = npt.NDArray[np.void]


class StepParts(msgspec.Struct, frozen=True):
    """One step; duration = computation + overlap + communication + other, ns (see the overview of the view)."""

    name: str
    start: int
    duration: int
    computation: int
    overlap: int
    communication: int
    other: int
    complete: bool


class NameTotal(msgspec.Struct, frozen=True):
    """Operations that share group and name: time in which any of them runs, and the part nothing hides, ns."""

    group: int
    collective: int
    backend: int
    latency: int
    exposed: int


class RankSummary(msgspec.Struct, frozen=True):
    """One rank.

    rank        that the file names, None if it does not
    host        its name, None if unknown
    process     id of the host's process, None if unknown
    base_ns, trace_start_ns, length  as in Trace; ns from its first event to its last
    names       texts that the codes in `operations` stand for
    operations  bytes of an array of OPERATION, in order of time
    layout      raised when OPERATION or a definition changes: what caches hold then is not decoded but made anew
    by_kernels  computation is told by kernels; False: by CPU Exec, for want of a GPU
    recorded_steps  False: no ProfilerStep, the one step is the whole recording
    """

    rank: int | None
    world_size: int | None
    backend: str | None
    host: str | None
    process: str | None
    base_ns: int
    trace_start_ns: int
    length: int
    devices: tuple[DeviceInfo, ...]
    groups: tuple[ProcessGroup, ...]
    steps: tuple[StepParts, ...]
    recorded_steps: bool
    by_kernels: bool
    names: tuple[str, ...]
    totals: tuple[NameTotal, ...]
    operations: bytes
    layout: Literal[1] = 1

    def table(self) -> Operations:
        """The operations as a structured array (read-only)."""
        return np.frombuffer(self.operations, OPERATION)


def summarize(trace: Trace) -> RankSummary:
    """Reduce a trace to what the comparison of ranks needs."""
    found, spans = collectives(trace), steps(trace)
    computation = _computation(trace)
    info = trace.metadata.get("distributedInfo")
    info = info if isinstance(info, Mapping) else {}
    world, backend, host = info.get("world_size"), info.get("backend"), trace.metadata.get("host_name")
    names = _Names(found.names)
    table = _operations(trace, found, spans, computation, names)
    return RankSummary(
        rank=rank(trace),
        world_size=world if type(world) is int else None,
        backend=backend if isinstance(backend, str) else None,
        host=host if isinstance(host, str) and host else None,
        process=_process(trace),
        base_ns=trace.base_ns,
        trace_start_ns=trace.trace_start_ns,
        length=_length(trace),
        devices=devices(trace),
        groups=tuple(found.groups),
        steps=_steps(trace, spans, computation),
        recorded_steps=spans.recorded,
        by_kernels=_by_kernels(trace),
        names=tuple(names.texts),
        totals=_totals(found, computation),
        operations=table.tobytes(),
    )


class _Names:
    """Texts of the summary; those of the collectives first."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = list(texts)

    def of_strings(self, trace: Trace, codes: Int32) -> Int32:
        """The same table of codes, into these texts instead of Trace.strings."""
        used = distinct(codes.ravel())
        table = np.full((max(used) if used else 0) + 2, NO_CODE, np.int32)  # the last cell answers for NO_CODE
        table[used] = len(self.texts) + np.arange(len(used))
        self.texts += [trace.strings[code][:LONGEST_NAME] for code in used]
        return table[codes]


def _by_kernels(trace: Trace) -> bool:
    return len(of_kind(trace, Kind.KERNEL)) > 0


def _computation(trace: Trace) -> Intervals:
    return role_intervals(trace)["kernel" if _by_kernels(trace) else "cpu_exec"]


def _steps(trace: Trace, spans: Steps, computation: Intervals) -> tuple[StepParts, ...]:
    communication = role_intervals(trace)["communication"]
    window = spans.starts, spans.ends
    both = covered(intersect(computation, communication), *window)
    computing, communicating = covered(computation, *window) - both, covered(communication, *window) - both
    lasting = spans.ends - spans.starts
    other = lasting - computing - communicating - both
    columns = spans.starts, lasting, computing, both, communicating, other, spans.complete
    return tuple(StepParts(*row) for row in zip(spans.names, *(each.tolist() for each in columns), strict=True))


def _operations(
    trace: Trace, found: Collectives, spans: Steps, computation: Intervals, names: _Names
) -> Operations:
    table = np.zeros(len(found), OPERATION)
    same = (
        "event", "call", "group", "collective", "backend", "dtype", "timing", "sequence", "source", "target",
        "issue", "start", "end", "bytes_in", "bytes_out",
    )  # fmt: skip
    for name in same:
        table[name] = getattr(found, name)
    table["step"] = _step_of(found, spans)
    timed = found.start != ABSENT
    busy = found.parts.totals(len(found))
    table["busy"] = np.where(timed, busy, ABSENT)
    table["exposed"] = np.where(timed, busy - _hidden(found.parts, computation, len(found)), ABSENT)
    table["message"], table["bus"] = _messages(found)
    _look_before(trace, found, table, names)
    return table


def _step_of(found: Collectives, spans: Steps) -> Int64:
    """Position of the step in which the host issued each operation; of what it did not record, in which it ran."""
    issued = found.issue != ABSENT
    on_host = _inside(found.issue, spans.host_starts, spans.host_ends)
    return np.where(issued, on_host, _inside(found.start, spans.starts, spans.ends))


def _inside(times: Int64, starts: Int64, ends: Int64) -> Int64:
    if len(starts) == 0:
        return np.full(len(times), NO_CODE)
    at = np.searchsorted(starts, times, "right") - 1
    return np.where((at >= 0) & (times <= ends[at]), at, NO_CODE)


def _hidden(parts: Owned, computation: Intervals, count: int) -> Int64:
    """int64[count]: time of each owner that the computation covers."""
    hidden = np.zeros(count, np.int64)
    np.add.at(hidden, parts.owner, covered(computation, parts.starts, parts.ends))
    return hidden


def _messages(found: Collectives) -> tuple[Int64, npt.NDArray[np.float64]]:
    """(message bytes, bytes over the slowest link) by NCCL's conventions; ABSENT and NaN where unknown.

    https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
    """
    sizes = np.array([group.size or 0 for group in found.groups] or [0], np.float64)[found.group]
    what = np.array([*found.names, ""])[found.collective] if len(found) else np.empty(0, "U1")
    gathers = what == "all_gather"
    grown = np.where((found.bytes_in != ABSENT) & (sizes > 0), found.bytes_in * sizes.astype(np.int64), ABSENT)
    gathered = np.where(found.bytes_out != ABSENT, found.bytes_out, grown)
    put = np.where(what == "recv", np.maximum(found.bytes_in, found.bytes_out), found.bytes_in)
    message = np.where(gathers, gathered, put)
    message = np.where((what == "barrier") | (message < 0), ABSENT, message)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.where(sizes > 0, (sizes - 1) / sizes, np.nan)
    factor = np.full(len(found), np.nan)
    for names, value in (
        (("all_reduce",), 2 * spread),
        (("all_gather", "reduce_scatter", "gather", "scatter", *ALL_TO_ALL), spread),
        (("broadcast", "reduce", "send", "recv"), np.ones(len(found))),
    ):
        which = np.isin(what, names)
        factor[which] = value[which]
    bus = np.where(message == ABSENT, np.nan, message * factor)
    return message, np.where(found.egress_bytes != ABSENT, found.egress_bytes, bus)


def _look_before(trace: Trace, found: Collectives, table: Operations, names: _Names) -> None:
    """Fill in what the rank did between the previous operation of the group and each one."""
    begin = np.full(len(found), ABSENT)
    for group in distinct(found.group):
        mine = np.flatnonzero((found.group == group) & (found.start != ABSENT))
        begin[mine[1:]] = np.maximum.accumulate(found.end[mine])[:-1]
    known = np.flatnonzero(begin != ABSENT)
    finish = found.start[known]
    window = np.minimum(begin[known], finish), finish
    table["window"] = ABSENT
    table["window"][known] = window[1] - window[0]
    table["categories"][known] = window_categories(trace, *window)
    host, kernels = top_host(trace, *window, HOST_NAMES), top_kernels(trace, *window, KERNEL_NAMES)
    for name, top in (("host", host), ("kernels", kernels)):
        table[name] = NO_CODE
        table[name][known] = names.of_strings(trace, top.codes)
    _store(table, known, "host_ns", host)
    _store(table, known, "kernel_ns", kernels)


def _store(table: Operations, known: Int64, column: str, top: Top) -> None:
    table[column][known] = top.times


def _totals(found: Collectives, computation: Intervals) -> tuple[NameTotal, ...]:
    """Of each group and name the union of its operations' times."""
    keys, which = np.unique(
        np.stack([found.group, found.collective, found.backend], axis=1).astype(np.int64),
        axis=0,
        return_inverse=True,
    )
    parts = found.parts
    union = merge_owned(which.reshape(-1)[parts.owner], parts.starts, parts.ends)
    latency = union.totals(len(keys))
    exposed = latency - _hidden(union, computation, len(keys))
    return tuple(
        NameTotal(*key, *times)
        for key, times in zip(keys.tolist(), np.stack([latency, exposed], axis=1).tolist(), strict=True)
    )


def _process(trace: Trace) -> str | None:
    """The pid of most host events."""
    threads = trace.events.thread[of_kind(trace, *HOST)]
    if len(threads) == 0:
        return None
    pid = trace.threads[int(np.bincount(threads).argmax())].pid
    return None if pid is None else str(pid)


def _length(trace: Trace) -> int:
    spans = steps(trace)
    last = [spans.ends.max(initial=0)]
    found = collectives(trace)
    last.append(found.end.max(initial=0))
    return int(max(last))
