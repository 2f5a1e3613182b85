"""The kind of every event, from the categories of all producers and vendors."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from torch_tb_profiler.base.compiled import column_functions
from torch_tb_profiler.base.intervals import Intervals, merge
from torch_tb_profiler.base.markers import is_composer_event, is_lightning_mark, is_step
from torch_tb_profiler.base.memo import derived, stored
from torch_tb_profiler.model.trace import ABSENT, Bool, Trace, distinct_codes, name_mask
from torch_tb_profiler.model.vendors import ascend, gaudi


class Kind(IntEnum):
    """The kind of an event, inferred from its category."""

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
    GRAPH_HOST = 15
    GRAPH_EVENT = 16


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
    "graph_host_node": Kind.GRAPH_HOST,
    "graph_event_node": Kind.GRAPH_EVENT,
    "trace": Kind.SPAN,
}

_BY_NAME: tuple[tuple[str, tuple[str, ...], Kind], ...] = (
    ("mtia_ccp_events", ("event_wait", "event_record"), Kind.SYNC),
    ("mtia_ccp_events", ("dma_",), Kind.MEMCPY),
    ("kernel", ("metrics: ",), Kind.METRICS),
)
"""(category, prefixes of names, kind) where one category holds several kinds.

MTIA reports waits and DMA beside kernels. Intel's scope profiler repeats every kernel, one nanosecond longer at
both ends, to carry its hardware metrics; the copy is no work.
"""

HOST_KINDS = (Kind.CPU_OP, Kind.ANNOTATION, Kind.PYTHON, Kind.RUNTIME, Kind.DRIVER)
"""Kinds of slices in the host's call tree."""

DEVICE_KINDS = (Kind.KERNEL, Kind.MEMCPY, Kind.MEMSET)
"""Kinds of device work."""

GRAPH_NODE_KINDS = (Kind.GRAPH_HOST, Kind.GRAPH_EVENT)
"""Kinds of nodes of a CUDA graph that keep no device busy: calls of the host, and events."""

_KIND_OF_ENGINE = np.full(len(gaudi.ENGINE_NAMES), Kind.UNKNOWN, np.int8)
_KIND_OF_ENGINE[[gaudi.MME, gaudi.TPC, gaudi.NIC]] = Kind.KERNEL
_KIND_OF_ENGINE[gaudi.DMA] = Kind.MEMCPY

# The plain autograd exporter writes no categories but names its two processes.
_AUTOGRAD_PROCESSES = {"CPU functions": Kind.CPU_OP, "CUDA functions": Kind.KERNEL}


@stored
def event_kinds(trace: Trace) -> npt.NDArray[np.int8]:
    """Return the Kind of every event, int8[n], whatever its phase."""
    table = np.array([KIND_BY_CATEGORY.get(text.lower(), Kind.UNKNOWN) for text in trace.strings] + [0], np.int8)
    kind = table.take(trace.events.category)
    by_process = np.array(
        [_AUTOGRAD_PROCESSES.get(str(thread.pid), Kind.UNKNOWN) for thread in trace.threads] + [0], np.int8
    )
    if by_process.any():
        bare = trace.events.category < 0
        kind = np.where(bare, by_process[trace.events.thread], kind)
    for category, prefixes, kind_by_name in _BY_NAME:
        in_category = np.array([*(text.lower() == category for text in trace.strings), False])
        has_prefix = np.array([*(text.startswith(prefixes) for text in trace.strings), False])
        if in_category.any() and has_prefix.any():
            rows = np.flatnonzero(in_category.take(trace.events.category))
            kind[rows[has_prefix.take(trace.events.name.take(rows))]] = kind_by_name
    marks = name_mask(trace.strings, is_lightning_mark)
    if marks.any():  # old Kineto has them in the category of operators
        kind[marks[trace.events.name] & (kind == Kind.CPU_OP)] = Kind.ANNOTATION
    trainer = name_mask(trace.strings, is_composer_event)
    if trainer.any():  # a callback's category is the name of its event
        pairs = np.isin(trace.events.phase, np.frombuffer(b"BEX", np.uint8))
        kind[trainer[trace.events.name] & pairs & (kind == Kind.UNKNOWN)] = Kind.TRAINER
    _set_gaudi_kinds(trace, kind)
    _set_ascend_kinds(trace, kind)
    return kind


def _set_ascend_kinds(trace: Trace, kind: npt.NDArray[np.int8]) -> None:
    """Set the kinds of Ascend's events, which have no category, by their process and `Task Type`."""
    role = ascend.ascend_roles(trace)
    if (role < 0).all():
        return
    role = role[trace.events.thread]
    bare = (kind == Kind.UNKNOWN) & np.isin(trace.events.phase, np.frombuffer(b"XB", np.uint8))
    kind[bare & (role == ascend.CANN)] = Kind.RUNTIME
    kind[bare & (role == ascend.GROUP)] = Kind.KERNEL
    tasks = np.flatnonzero(bare & (role == ascend.HARDWARE)).astype(np.int32)
    codes, texts = trace.arg_codes("Task Type", tasks)
    table = np.array([*map(_kind_of_task, texts), Kind.UNKNOWN], np.int8)
    kind[tasks] = table[codes]


def _kind_of_task(task_type: str) -> Kind:
    if ascend.WAIT_TASK.search(task_type):
        return Kind.SYNC
    return Kind.MEMCPY if ascend.COPY_TASK.search(task_type) else Kind.KERNEL


def _set_gaudi_kinds(trace: Trace, kind: npt.NDArray[np.int8]) -> None:
    """Set the kinds of Gaudi's device work, which has the category of calls, by engine.

    Slices without duration are ends of flows, and those marked hidden reach beyond the recording: both get no
    kind.
    """
    engine_of_thread = gaudi.thread_engines(trace)
    if (engine_of_thread >= 0).any():
        engine = engine_of_thread[trace.events.thread]
        on_device = (kind == Kind.RUNTIME) & (engine >= 0)
        kind[on_device] = _KIND_OF_ENGINE[engine[on_device]]
    for code, text in enumerate(trace.strings):  # texts are fewer than events
        category = text.lower()
        if category in ("hpu_op", "privateuse1_runtime"):
            rows = np.flatnonzero(trace.events.category == code).astype(np.int32)
            ends_flow, hidden = trace.events.duration[rows] <= 0, trace.arg_int("hidden", rows) == 1
            kind[rows[ends_flow if category == "hpu_op" else hidden]] = Kind.UNKNOWN


@derived
def slice_mask(trace: Trace) -> Bool:
    """Return which events are slices, bool[n]: "X", and "B" with a matching "E", if they have a start."""
    events = trace.events
    begins: Bool = events.phase == ord("X")
    if (is_begin := events.phase == ord("B")).any():
        begins |= is_begin & (events.duration != ABSENT)
    placed: Bool = begins & (events.start != ABSENT)
    return placed


def rows_of_kind(trace: Trace, *wanted: Kind) -> npt.NDArray[np.int32]:
    """Return the rows of the slices of these kinds, int32[k], in file order."""
    return _rows_by_kind(trace)[wanted[0]] if len(wanted) == 1 else _rows_of_kinds(trace, tuple(sorted(wanted)))


def events_of_kind(trace: Trace, *wanted: Kind) -> npt.NDArray[np.int32]:
    """Return the rows of all events of these kinds, in file order, even of those that are no slices (few are)."""
    rows, kind = rows_of_kind(trace, *wanted), event_kinds(trace)
    if sum(int(np.count_nonzero(kind == each.value)) for each in wanted) == len(rows):
        return rows
    return np.flatnonzero(np.isin(kind, wanted)).astype(np.int32)


@derived
def _rows_of_kinds(trace: Trace, wanted: tuple[Kind, ...]) -> npt.NDArray[np.int32]:
    parts = [rows for kind in wanted if len(rows := _rows_by_kind(trace)[kind])]
    if len(parts) < 2:
        return parts[0] if parts else np.empty(0, np.int32)
    count = sum(map(len, parts))
    if functions := column_functions(count):
        return functions.select(event_kinds(trace), slice_mask(trace), wanted, count)
    return np.sort(np.concatenate(parts), kind="stable")


@stored
def _rows_by_kind(trace: Trace) -> list[npt.NDArray[np.int32]]:
    """Return the rows of each Kind's slices, in file order."""
    kind, is_slice = event_kinds(trace), slice_mask(trace)
    if functions := column_functions(len(trace)):
        return functions.group(kind, is_slice, len(Kind))
    # A pass for each kind, of which a trace has few, is faster than sorting by kind.
    return [np.flatnonzero((kind == each.value) & is_slice).astype(np.int32) for each in Kind]


def names_of_kind(trace: Trace, *wanted: Kind) -> set[str]:
    """Return the distinct names of the slices of these kinds."""
    return {trace.strings[code] for code in codes_of_kinds(trace, *wanted).tolist()}


def codes_of_kinds(trace: Trace, *wanted: Kind) -> npt.NDArray[np.int32]:
    """Return the codes of the names of the slices of these kinds, once for each kind."""
    return np.concatenate([_codes_of_kind(trace, kind) for kind in wanted])


def rows_named(trace: Trace, predicate: Callable[[str], object], *wanted: Kind) -> npt.NDArray[np.int32]:
    """Return the rows of the slices of these kinds whose name `predicate` is true of, in file order."""
    is_named = name_mask(trace.strings, predicate, codes_of_kinds(trace, *wanted))
    # Kinds without such a name, as most are, needn't be looked through.
    having = [kind for kind in wanted if is_named.take(_codes_of_kind(trace, kind)).any()]
    return rows_in_mask(trace, rows_of_kind(trace, *having), is_named) if having else np.empty(0, np.int32)


def rows_in_mask(trace: Trace, rows: npt.NDArray[np.int32], is_named: Bool) -> npt.NDArray[np.int32]:
    """Return those of these rows whose name is in a mask as `name_mask` returns it."""
    if not is_named.any():
        return rows[:0]
    functions = column_functions(len(rows))
    found = None if functions is None else functions.named(rows, trace.events.name, is_named)
    return rows[is_named.take(trace.events.name.take(rows))] if found is None else found


@derived
def step_marks(trace: Trace) -> npt.NDArray[np.int32]:
    """Return the rows of the slices that mark a step (`ProfilerStep#5`), in file order."""
    return rows_named(trace, is_step, Kind.ANNOTATION, Kind.CPU_OP)


@derived
def _codes_of_kind(trace: Trace, kind: Kind) -> npt.NDArray[np.int32]:
    """Return the codes of the names of a kind's slices, each once: many questions are about names."""
    return np.array(distinct_codes(trace.events.name.take(rows_of_kind(trace, kind))), np.int32)


@derived
def event_ends(trace: Trace) -> npt.NDArray[np.int64]:
    """Return the end of every event, int64[n], or ABSENT; a missing or negative duration counts as 0."""
    events = trace.events
    ends = np.maximum(events.duration, 0)  # ABSENT is negative too
    ends += events.start
    ends[events.start == ABSENT] = ABSENT
    return ends


def event_spans(
    trace: Trace, rows: npt.NDArray[np.integer[Any]]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the starts and the ends (`event_ends`) of some rows, int64[k], without those of all others."""
    events = trace.events
    if rows.dtype == np.int32 and (functions := column_functions(len(rows))):
        spans = functions.spans(rows, events.start, events.duration)
        if spans is not None:
            return spans
    start, ends = events.start.take(rows), events.duration.take(rows)
    np.maximum(ends, 0, out=ends)
    ends += start
    ends[start == ABSENT] = ABSENT
    return start, ends


def event_lengths(trace: Trace, rows: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.int64]:
    """Return how long some rows take, int64[k] ns, without the ends of all others."""
    start, end = event_spans(trace, rows)
    end -= start
    return end


def event_intervals(trace: Trace, rows: npt.NDArray[np.integer[Any]]) -> Intervals:
    """Return when any of these events runs."""
    if rows.dtype == np.int32 and (functions := column_functions(len(rows))):
        found = functions.intervals(rows, trace.events.start, trace.events.duration)
        if found is not None:
            return Intervals(*found)
    return merge(*event_spans(trace, rows))
