"""What an event is: categories of every generation and vendor, as data."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt

from torch_tb_profiler.base.markers import is_composer_event, is_lightning_mark
from torch_tb_profiler.model.trace import ABSENT, Bool, Trace, derived, distinct_codes, name_mask
from torch_tb_profiler.model.vendors import ascend, gaudi


class Kind(IntEnum):
    """The role of an event, inferred from its category."""

    UNKNOWN = 0
    CPU_OP = 1
    ANNOTATION = 2
    PYTHON = 3
    RUNTIME = 4
    DRIVER = 5
    KERNEL = 6
    MEMCPY = 7
    MEMSET = 8
    DEVICE_ANNOTATION = 9
    SYNC = 10
    OVERHEAD = 11
    SPAN = 12
    METRICS = 13
    TRAINER = 14


# Lower-cased category -> kind. Old Kineto capitalized them; vendors add their own prefix.
KIND_BY_CATEGORY: dict[str, Kind] = {
    "cpu_op": Kind.CPU_OP,
    "operator": Kind.CPU_OP,
    "user_annotation": Kind.ANNOTATION,
    "python_function": Kind.PYTHON,
    "python": Kind.PYTHON,
    "runtime": Kind.RUNTIME,
    "cuda_runtime": Kind.RUNTIME,
    "hip_runtime": Kind.RUNTIME,
    "xpu_runtime": Kind.RUNTIME,
    "mtia_runtime": Kind.RUNTIME,
    "glow_runtime": Kind.RUNTIME,
    "privateuse1_runtime": Kind.RUNTIME,
    "hpu_op": Kind.RUNTIME,
    "enqueue": Kind.RUNTIME,
    "dequeue": Kind.RUNTIME,
    "cuda_driver": Kind.DRIVER,
    "hip_driver": Kind.DRIVER,
    "xpu_driver": Kind.DRIVER,
    "privateuse1_driver": Kind.DRIVER,
    "kernel": Kind.KERNEL,
    "mtia_ccp_events": Kind.KERNEL,
    "collective_comm": Kind.ANNOTATION,  # Intel's `xccl::allreduce`: the call on the host, not the kernel
    "memcpy": Kind.MEMCPY,
    "gpu_memcpy": Kind.MEMCPY,
    "memset": Kind.MEMSET,
    "gpu_memset": Kind.MEMSET,
    "gpu_user_annotation": Kind.DEVICE_ANNOTATION,
    "cuda_sync": Kind.SYNC,
    "xpu_sync": Kind.SYNC,
    "overhead": Kind.OVERHEAD,
    "cuda_profiler_range": Kind.METRICS,
    "trace": Kind.SPAN,
}

_BY_NAME: tuple[tuple[str, tuple[str, ...], Kind], ...] = (
    ("mtia_ccp_events", ("event_wait", "event_record"), Kind.SYNC),
    ("mtia_ccp_events", ("dma_",), Kind.MEMCPY),
    ("kernel", ("metrics: ",), Kind.METRICS),
)
"""(category, what a name in it begins with, kind): where a device files more than one kind under one category.

An MTIA card reports its waits and its DMA beside its kernels. Intel's scope profiler repeats every kernel, one
nanosecond longer at both ends, to carry its hardware metrics: no work of its own.
"""

HOST_KINDS = (Kind.CPU_OP, Kind.ANNOTATION, Kind.PYTHON, Kind.RUNTIME, Kind.DRIVER)
"""Kinds that take their place in the host's call tree."""

DEVICE_KINDS = (Kind.KERNEL, Kind.MEMCPY, Kind.MEMSET)
"""Kinds that are work of a device."""

_OF_ENGINE = np.full(len(gaudi.ENGINE_NAMES), Kind.UNKNOWN, np.int8)
_OF_ENGINE[[gaudi.MME, gaudi.TPC, gaudi.NIC]] = Kind.KERNEL
_OF_ENGINE[gaudi.DMA] = Kind.MEMCPY

# The plain autograd exporter writes no categories but names its two processes.
_AUTOGRAD_PROCESSES = {"CPU functions": Kind.CPU_OP, "CUDA functions": Kind.KERNEL}


@derived
def event_kinds(trace: Trace) -> npt.NDArray[np.int8]:
    """int8[n]: the Kind of every event, whatever its phase."""
    table = np.array([KIND_BY_CATEGORY.get(text.lower(), Kind.UNKNOWN) for text in trace.strings] + [0], np.int8)
    kind = table[trace.events.category]
    by_process = np.array(
        [_AUTOGRAD_PROCESSES.get(str(thread.pid), Kind.UNKNOWN) for thread in trace.threads] + [0], np.int8
    )
    if by_process.any():
        bare = trace.events.category < 0
        kind = np.where(bare, by_process[trace.events.thread], kind)
    for category, begins, named in _BY_NAME:
        filed = np.array([*(text.lower() == category for text in trace.strings), False])
        if filed.any():
            fits = np.array([*(text.startswith(begins) for text in trace.strings), False])
            kind[filed[trace.events.category] & fits[trace.events.name]] = named
    marks = name_mask(trace.strings, is_lightning_mark)
    if marks.any():  # old Kineto filed them under operators
        kind[marks[trace.events.name] & (kind == Kind.CPU_OP)] = Kind.ANNOTATION
    trainer = name_mask(trace.strings, is_composer_event)
    if trainer.any():  # its callbacks carry the name of their event as a category
        pairs = np.isin(trace.events.phase, np.frombuffer(b"BEX", np.uint8))
        kind[trainer[trace.events.name] & pairs & (kind == Kind.UNKNOWN)] = Kind.TRAINER
    _of_gaudi(trace, kind)
    _of_ascend(trace, kind)
    return kind


def _of_ascend(trace: Trace, kind: npt.NDArray[np.int8]) -> None:
    """Its calls, tasks and collectives have no category: the process and the argument `Task Type` tell."""
    lane = ascend.ascend_roles(trace)
    if (lane < 0).all():
        return
    at = lane[trace.events.thread]
    bare = (kind == Kind.UNKNOWN) & np.isin(trace.events.phase, np.frombuffer(b"XB", np.uint8))
    kind[bare & (at == ascend.CANN)] = Kind.RUNTIME
    kind[bare & (at == ascend.GROUP)] = Kind.KERNEL
    tasks = np.flatnonzero(bare & (at == ascend.HARDWARE)).astype(np.int32)
    codes, texts = trace.arg_codes("Task Type", tasks)
    table = np.array([*map(_of_task, texts), Kind.UNKNOWN], np.int8)
    kind[tasks] = table[codes]


def _of_task(type_: str) -> Kind:
    if ascend.WAIT_TASK.search(type_):
        return Kind.SYNC
    return Kind.MEMCPY if ascend.COPY_TASK.search(type_) else Kind.KERNEL


def _of_gaudi(trace: Trace, kind: npt.NDArray[np.int8]) -> None:
    """Work of a card that is filed as a call is that of its engine. Ends of flows (no extent) are no calls; those
    marked hidden reach out of the recording."""
    engine = gaudi.thread_engines(trace)[trace.events.thread]
    filed = (kind == Kind.RUNTIME) & (engine >= 0)
    if filed.any():
        kind[filed] = _OF_ENGINE[engine[filed]]
    for code in distinct_codes(trace.events.category):
        category = trace.strings[code].lower()
        if category in ("hpu_op", "privateuse1_runtime"):
            rows = np.flatnonzero(trace.events.category == code).astype(np.int32)
            ends_flow, hidden = trace.events.duration[rows] <= 0, trace.arg_int("hidden", rows) == 1
            kind[rows[ends_flow if category == "hpu_op" else hidden]] = Kind.UNKNOWN


@derived
def slice_mask(trace: Trace) -> Bool:
    """bool[n]: events with a start and an extent: "X", and "B" with its "E"."""
    events = trace.events
    begins: Bool = (events.phase == ord("X")) | ((events.phase == ord("B")) & (events.duration != ABSENT))
    placed: Bool = begins & (events.start != ABSENT)
    return placed


def rows_of_kind(trace: Trace, *wanted: Kind) -> npt.NDArray[np.int32]:
    """int32[k]: rows of the slices of these kinds, in file order."""
    parts = [_rows_by_kind(trace)[kind] for kind in wanted]
    return parts[0] if len(parts) == 1 else np.sort(np.concatenate(parts), kind="stable")


@derived
def _rows_by_kind(trace: Trace) -> list[npt.NDArray[np.int32]]:
    """Of each Kind the rows of its slices, in file order."""
    rows = np.flatnonzero(slice_mask(trace)).astype(np.int32)
    kind = event_kinds(trace)[rows]
    rows = rows[np.argsort(kind, kind="stable")]
    return np.split(rows, np.cumsum(np.bincount(kind, minlength=len(Kind)))[:-1])


def names_of_kind(trace: Trace, *wanted: Kind) -> set[str]:
    """The distinct names of the slices of these kinds."""
    rows = np.concatenate([rows_of_kind(trace, kind) for kind in wanted])
    return {trace.strings[code] for code in distinct_codes(trace.events.name[rows])}


@derived
def event_ends(trace: Trace) -> npt.NDArray[np.int64]:
    """int64[n]: start + duration; a missing or negative duration counts as 0; ABSENT without a start."""
    events = trace.events
    lasting = np.maximum(events.duration, 0)  # ABSENT is negative too
    return np.where(events.start == ABSENT, ABSENT, events.start + lasting)
