"""The summary of one rank's trace: what comparing N ranks needs, so that it costs N small summaries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

import msgspec
import numpy as np
import numpy.typing as npt

from torch_tb_profiler.analyses.distributed.operations import (
    Operations,
    PackedOperations,
    operation_table,
    overlapped_times,
    pack_operations,
    unpack_operations,
)
from torch_tb_profiler.analyses.shared.breakdown import role_intervals
from torch_tb_profiler.analyses.shared.grouping import group, kernel_size_codes, kernel_size_text
from torch_tb_profiler.analyses.shared.typical_steps import step_kinds
from torch_tb_profiler.base.intervals import Intervals, covered_time, intersect, merge_by_owner
from torch_tb_profiler.model.communication.collectives import Collectives, collectives
from torch_tb_profiler.model.communication.events import is_communication_kernel
from torch_tb_profiler.model.communication.groups import ProcessGroup
from torch_tb_profiler.model.devices import DeviceInfo, devices
from torch_tb_profiler.model.engines import call_durations, deduplicate_executions
from torch_tb_profiler.model.kernels.families import FAMILIES, family_codes
from torch_tb_profiler.model.kernels.short_names import short_kernel_names
from torch_tb_profiler.model.kinds import DEVICE_KINDS, HOST_KINDS, Kind, event_ends, rows_of_kind
from torch_tb_profiler.model.ranks import trace_rank
from torch_tb_profiler.model.steps import Steps, step_noun, steps
from torch_tb_profiler.model.trace import NO_CODE, Int32, Trace, distinct_codes
from torch_tb_profiler.model.trainer import ClockSync, clock_sync

MAX_KERNELS = 40
"""Number of kernels by name and size, those with the most time, whose totals a summary holds."""

_MAX_NAME_LENGTH = 300

RANK_STEP = np.dtype(
    [
        ("start", "<i8"), ("duration", "<i8"), ("computation", "<i8"), ("overlap", "<i8"), ("exposed", "<i8"),
        ("other", "<i8"), ("complete", "?"), ("typical", "?"),
    ]
)  # fmt: skip
"""One step; duration = computation + overlap + exposed + other, in ns.

computation  kernels that do not communicate (without a GPU: CPU Exec) while nothing communicates
overlap      computation and communication at once
exposed      communication not overlapped with computation
complete     False for a trailing step whose device work is missing
typical      complete, and not far longer or shorter than the rank's other steps
"""


class RankSteps(msgspec.Struct, frozen=True):
    """The steps of one rank in order of time; `parts` are the bytes of an array of RANK_STEP."""

    names: tuple[str, ...]
    parts: Annotated[bytes, RANK_STEP]

    def __len__(self) -> int:
        return len(self.names)

    def table(self) -> npt.NDArray[np.void]:
        """Return the steps as a structured array (read-only)."""
        return np.frombuffer(self.parts, RANK_STEP)

    def complete_names(self) -> list[str]:
        """Return the names of the complete steps."""
        return self._names("complete")

    def typical_names(self) -> list[str]:
        """Return the names of the typical steps, which averages are made of."""
        return self._names("typical")

    def _names(self, flag: str) -> list[str]:
        return [name for name, is_set in zip(self.names, self.table()[flag].tolist(), strict=True) if is_set]


class OperationTotal(msgspec.Struct, frozen=True):
    """The operations that share group, collective, and back end.

    latency  ns in which any of them runs; exposed: ns of that not overlapped with computation
    """

    group: int
    collective: int
    backend: int
    latency: int
    exposed: int


class KernelTotal(msgspec.Struct, frozen=True):
    """The kernels of one name and size that do not communicate.

    name  code into the summary's names
    time  ns
    size  grid and input shapes of the operator, "" where the file records neither
    """

    name: int
    calls: int
    time: int
    size: str


class KernelFamilyTotal(msgspec.Struct, frozen=True):
    """The kernels, copies, and memsets of one family; times are sums of durations in ns.

    kernel  short name of the kernel with the most time in the family; kernel_time is its ns
    """

    family: str
    calls: int
    time: int
    kernel: str
    kernel_time: int


class RankSummary(msgspec.Struct, frozen=True):
    """The summary of one rank.

    rank        as recorded in the file, None if it is not
    host        name of the host, None if unknown
    process     id of the host process, None if unknown
    base_ns, trace_start_ns  as in Trace
    sync        when all ranks met, as a trainer recorded it; None without a record, or if the file is on one clock
                already
    length      ns from the first event to the end of the last step or operation
    names       texts of the name codes: first those of the operations, then those of the kernels
    operations  in order of time; what the rank did before each of them is in `RankDetails`
    by_kernels  True if computation is measured by kernels; False if by CPU Exec, as there is no GPU
    producer    the program that wrote the file
    recorded_steps  False if there is no ProfilerStep, so that the only step is the entire recording
    step_noun   what a step is in a sentence, see `model.steps.step_noun`
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
    step_noun: str
    by_kernels: bool
    names: tuple[str, ...]
    totals: tuple[OperationTotal, ...]
    kernels: tuple[KernelTotal, ...]
    families: tuple[KernelFamilyTotal, ...]
    operations: PackedOperations

    def table(self) -> Operations:
        """Return the operations as an array of OPERATION."""
        return unpack_operations(self.operations)


def summarize_rank(trace: Trace) -> RankSummary:
    """Reduce a trace to what the comparison of ranks needs."""
    operations, spans = collectives(trace), steps(trace)
    computation = _computation(trace)
    info: Any = trace.metadata.get("distributedInfo")
    info = info if isinstance(info, Mapping) else {}
    world, backend, host = info.get("world_size"), info.get("backend"), trace.metadata.get("host_name")
    names = StringTable(operations.names)
    table = operation_table(trace, operations, spans, computation)
    kernels = _sum_kernel_totals(trace, names)
    return RankSummary(
        rank=trace_rank(trace),
        world_size=world if type(world) is int else None,
        backend=backend if isinstance(backend, str) else None,
        host=host if isinstance(host, str) and host else None,
        process=_find_process_id(trace),
        base_ns=trace.base_ns,
        trace_start_ns=trace.trace_start_ns,
        sync=clock_sync(trace),
        length=int(max(spans.ends.max(initial=0), operations.end.max(initial=0))),
        devices=devices(trace),
        groups=tuple(operations.groups),
        steps=_build_rank_steps(trace, spans, computation),
        producer=trace.producer,
        recorded_steps=spans.recorded,
        step_noun=step_noun(trace),
        by_kernels=_has_kernels(trace),
        names=tuple(names.texts),
        totals=_sum_operation_totals(operations, computation),
        kernels=kernels,
        families=kernel_family_totals(trace),
        operations=pack_operations(table),
    )


def _has_kernels(trace: Trace) -> bool:
    return len(rows_of_kind(trace, Kind.KERNEL)) > 0


def _computation(trace: Trace) -> Intervals:
    return role_intervals(trace)["kernel" if _has_kernels(trace) else "cpu_exec"]


def _find_process_id(trace: Trace) -> str | None:
    """Return the process id of most host events."""
    threads = trace.events.thread[rows_of_kind(trace, *HOST_KINDS)]
    if len(threads) == 0:
        return None
    pid = trace.threads[int(np.bincount(threads).argmax())].pid
    return None if pid is None else str(pid)


def _build_rank_steps(trace: Trace, spans: Steps, computation: Intervals) -> RankSteps:
    communication = role_intervals(trace)["communication"]
    window = spans.starts, spans.ends
    table = np.zeros(len(spans.starts), RANK_STEP)
    table["overlap"] = covered_time(intersect(computation, communication), *window)
    table["start"], table["duration"], table["complete"] = spans.starts, spans.ends - spans.starts, spans.complete
    table["typical"] = step_kinds(trace).typical
    table["computation"] = covered_time(computation, *window) - table["overlap"]
    table["exposed"] = covered_time(communication, *window) - table["overlap"]
    table["other"] = table["duration"] - table["computation"] - table["exposed"] - table["overlap"]
    return RankSteps(tuple(spans.names), table.tobytes())


def _sum_operation_totals(operations: Collectives, computation: Intervals) -> tuple[OperationTotal, ...]:
    """Return the union of the operations' times by group and name."""
    keys, which = np.unique(
        np.stack([operations.group, operations.collective, operations.backend], axis=1).astype(np.int64),
        axis=0,
        return_inverse=True,
    )
    parts = operations.parts
    union = merge_by_owner(which.reshape(-1)[parts.owner], parts.starts, parts.ends)
    latency = union.totals(len(keys))
    exposed = latency - overlapped_times(union, computation, len(keys))
    return tuple(
        OperationTotal(*key, *times)
        for key, times in zip(keys.tolist(), np.stack([latency, exposed], axis=1).tolist(), strict=True)
    )


def _sum_kernel_totals(trace: Trace, names: StringTable) -> tuple[KernelTotal, ...]:
    """Return the totals of the MAX_KERNELS kernels by name and size with the most time, most first."""
    rows = rows_of_kind(trace, Kind.KERNEL)
    rows = rows[~is_communication_kernel(trace)[rows]]
    kernels = group(trace.events.name[rows].astype(np.int64), *kernel_size_codes(trace, rows))
    times = kernels.sums(event_ends(trace)[rows] - trace.events.start[rows])
    largest = np.argsort(-times, kind="stable")[:MAX_KERNELS]
    first = kernels.first[largest]
    codes = names.add(trace, trace.events.name[rows][first])
    sizes = [kernel_size_text(trace, row) for row in rows[first].tolist()]
    columns = codes.tolist(), kernels.counts[largest].tolist(), times[largest].tolist(), sizes
    return tuple(KernelTotal(*row) for row in zip(*columns, strict=True))


def kernel_family_totals(trace: Trace) -> tuple[KernelFamilyTotal, ...]:
    """Return the device work of the entire trace by kernel family, most time first."""
    rows = deduplicate_executions(trace, rows_of_kind(trace, *DEVICE_KINDS))
    family, name = family_codes(trace)[rows].astype(np.int32), trace.events.name[rows]
    kernels = group(family, name)
    times = kernels.sums(call_durations(trace, rows))
    kernel_family = family[kernels.first]
    totals = []
    for code in np.unique(family).tolist():
        members = np.flatnonzero(kernel_family == code)
        largest = int(members[np.argmax(times[members])])
        text = trace.strings[name[kernels.first[largest]]] if name[kernels.first[largest]] >= 0 else ""
        totals.append(
            KernelFamilyTotal(
                family=FAMILIES[code],
                calls=int(kernels.counts[members].sum()),
                time=int(times[members].sum()),
                kernel=short_kernel_names(trace).get(text, text),
                kernel_time=int(times[largest]),
            )
        )
    return tuple(sorted(totals, key=lambda total: -total.time))


class StringTable:
    """A growing list of texts that name codes refer to."""

    def __init__(self, texts: Sequence[str] = ()) -> None:
        self.texts = list(texts)

    def add(self, trace: Trace, codes: Int32) -> Int32:
        """Add the strings of `trace` that `codes` use, and return the codes translated to this table."""
        used = distinct_codes(codes.ravel())
        table = np.full((max(used) if used else 0) + 2, NO_CODE, np.int32)  # NO_CODE indexes the last cell
        table[used] = len(self.texts) + np.arange(len(used))
        self.texts += [trace.strings[code][:_MAX_NAME_LENGTH] for code in used]
        return table[codes]


def short_names_of(trace: Trace, names: Iterable[str]) -> dict[str, str]:
    """Return the short name, unique within the rank, of each kernel among `names` of a StringTable."""
    used = set(names)
    return {
        name[:_MAX_NAME_LENGTH]: short
        for name, short in short_kernel_names(trace).items()
        if name[:_MAX_NAME_LENGTH] in used
    }
