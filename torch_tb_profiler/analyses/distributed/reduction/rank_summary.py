"""What one rank's trace contributes to the view of its job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.reduction.family_totals import FamilyTotal, family_totals
from torch_tb_profiler.analyses.distributed.reduction.names import Names
from torch_tb_profiler.analyses.distributed.reduction.operations import Operations, hidden_times, operation_table
from torch_tb_profiler.analyses.distributed.reduction.packed import Packed, pack, unpack
from torch_tb_profiler.analyses.distributed.reduction.rank_steps import RankSteps, rank_steps
from torch_tb_profiler.analyses.shared.breakdown import role_intervals
from torch_tb_profiler.analyses.shared.grouping import group
from torch_tb_profiler.base.intervals import Intervals, merge_by_owner
from torch_tb_profiler.model.communication.collectives import Collectives, collectives
from torch_tb_profiler.model.communication.events import communication_kernels
from torch_tb_profiler.model.communication.groups import ProcessGroup
from torch_tb_profiler.model.devices import DeviceInfo, devices
from torch_tb_profiler.model.kinds import HOST_KINDS, Kind, event_ends, rows_of_kind
from torch_tb_profiler.model.ranks import trace_rank
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.model.trainer.clock import ClockSync, clock_sync


class NameTotal(msgspec.Struct, frozen=True):
    """Operations that share group, collective and back end: the time in which any of them runs, and the part of it
    that no computation hides; ns."""

    group: int
    collective: int
    backend: int
    latency: int
    exposed: int


class KernelTotal(msgspec.Struct, frozen=True):
    """Device work of one name other than communication; ns. `name` is a code into the summary's names."""

    name: int
    calls: int
    time: int


MOST_KERNELS = 20
"""Of so many names, those with the most time, the totals are kept."""


class RankSummary(msgspec.Struct, frozen=True):
    """One rank.

    rank        as the file names it, None if it does not
    host        its name, None if unknown
    process     id of the host process, None if unknown
    base_ns, trace_start_ns  as in Trace
    sync        when all ranks met, as a trainer noted it; None if it did not, or the file is on one clock already
    length      ns from the first event to the end of the last step or operation
    names       texts that codes stand for: first those of the operations, then those of the kernels
    families    its device work by family of kernels
    operations  in order of time; what the rank did before each of them is kept beside (`RankDetails`)
    by_kernels  computation is measured by kernels; False: by CPU Exec, as there is no GPU
    producer    what wrote the file
    recorded_steps  False: no ProfilerStep is recorded, and the only step is the whole recording
    """

    rank: int | None
    world_size: int | None
    backend: str | None
    host: str | None
    process: str | None
    base_ns: int
    trace_start_ns: int
    sync: ClockSync | None
    length: int
    devices: tuple[DeviceInfo, ...]
    groups: tuple[ProcessGroup, ...]
    steps: RankSteps
    producer: str
    recorded_steps: bool
    by_kernels: bool
    names: tuple[str, ...]
    totals: tuple[NameTotal, ...]
    kernels: tuple[KernelTotal, ...]
    families: tuple[FamilyTotal, ...]
    operations: Packed

    def table(self) -> Operations:
        """The operations as an array of OPERATION."""
        return unpack(self.operations)


def summarize(trace: Trace) -> RankSummary:
    """Reduce a trace to what the comparison of ranks needs."""
    operations, spans = collectives(trace), steps(trace)
    computation = _computation(trace)
    info: Any = trace.metadata.get("distributedInfo")
    info = info if isinstance(info, Mapping) else {}
    world, backend, host = info.get("world_size"), info.get("backend"), trace.metadata.get("host_name")
    names = Names(operations.names)
    table = operation_table(trace, operations, spans, computation)
    kernels = _kernel_totals(trace, names)
    return RankSummary(
        rank=trace_rank(trace),
        world_size=world if type(world) is int else None,
        backend=backend if isinstance(backend, str) else None,
        host=host if isinstance(host, str) and host else None,
        process=_process(trace),
        base_ns=trace.base_ns,
        trace_start_ns=trace.trace_start_ns,
        sync=clock_sync(trace),
        length=int(max(spans.ends.max(initial=0), operations.end.max(initial=0))),
        devices=devices(trace),
        groups=tuple(operations.groups),
        steps=rank_steps(trace, spans, computation),
        producer=trace.producer,
        recorded_steps=spans.recorded,
        by_kernels=_has_kernels(trace),
        names=tuple(names.texts),
        totals=_totals(operations, computation),
        kernels=kernels,
        families=family_totals(trace),
        operations=pack(table),
    )


def _has_kernels(trace: Trace) -> bool:
    return len(rows_of_kind(trace, Kind.KERNEL)) > 0


def _computation(trace: Trace) -> Intervals:
    return role_intervals(trace)["kernel" if _has_kernels(trace) else "cpu_exec"]


def _totals(operations: Collectives, computation: Intervals) -> tuple[NameTotal, ...]:
    """The union of the operations' times, by group and name."""
    keys, which = np.unique(
        np.stack([operations.group, operations.collective, operations.backend], axis=1).astype(np.int64),
        axis=0,
        return_inverse=True,
    )
    parts = operations.parts
    union = merge_by_owner(which.reshape(-1)[parts.owner], parts.starts, parts.ends)
    latency = union.totals(len(keys))
    exposed = latency - hidden_times(union, computation, len(keys))
    return tuple(
        NameTotal(*key, *times)
        for key, times in zip(keys.tolist(), np.stack([latency, exposed], axis=1).tolist(), strict=True)
    )


def _kernel_totals(trace: Trace, names: Names) -> tuple[KernelTotal, ...]:
    """Most time first."""
    rows = rows_of_kind(trace, Kind.KERNEL)
    rows = rows[~communication_kernels(trace)[rows]]
    kinds = group(trace.events.name[rows])
    times = kinds.sums(event_ends(trace)[rows] - trace.events.start[rows])
    most = np.argsort(-times, kind="stable")[:MOST_KERNELS]
    codes = names.adopt(trace, trace.events.name[rows][kinds.first[most]])
    columns = codes.tolist(), kinds.counts[most].tolist(), times[most].tolist()
    return tuple(KernelTotal(*row) for row in zip(*columns, strict=True))


def _process(trace: Trace) -> str | None:
    """The pid of most host events."""
    threads = trace.events.thread[rows_of_kind(trace, *HOST_KINDS)]
    if len(threads) == 0:
        return None
    pid = trace.threads[int(np.bincount(threads).argmax())].pid
    return None if pid is None else str(pid)
