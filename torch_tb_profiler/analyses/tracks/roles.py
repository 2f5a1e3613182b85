"""The role of every event on its thread, what threads and streams mostly do, and counts of events by role.

A (pid, tid) pair is split by role, so that spans that run side by side by design (an annotation over kernels)
aren't mistaken for overlap.
"""

from __future__ import annotations

from enum import IntEnum

import msgspec
import numpy as np
import numpy.typing as npt

from torch_tb_profiler.analyses.tracks.events import INSTANT_PHASES, all_slices, event_phase_mask
from torch_tb_profiler.base.arrays import distinct_numbers
from torch_tb_profiler.base.markers import is_step
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.communication.events import is_communication_kernel
from torch_tb_profiler.model.devices import device_ids, stream_ids
from torch_tb_profiler.model.kinds import (
    DEVICE_KINDS,
    GRAPH_NODE_KINDS,
    Kind,
    event_ends,
    event_kinds,
    rows_of_kind,
)
from torch_tb_profiler.model.memory.events import is_memory_event
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Int64, Trace, name_mask
from torch_tb_profiler.model.vendors.gaudi import thread_engines


class Role(IntEnum):
    """What an event is to its (pid, tid) pair."""

    HOST = 0
    DEVICE = 1
    ANNOTATION = 2
    SYNC = 3
    INSTANT = 4
    TRAINER = 5
    GRAPH = 6


_COUNTED_AT_ONCE = 1 << 17
"""Events that are counted at once: their columns stay in the processor's cache."""

_ROLE_OF_KIND = np.zeros(len(Kind), np.int8)
_ROLE_OF_KIND[list(DEVICE_KINDS)] = Role.DEVICE
_ROLE_OF_KIND[[Kind.DEVICE_ANNOTATION, Kind.METRICS]] = Role.ANNOTATION
_ROLE_OF_KIND[Kind.SYNC] = Role.SYNC
_ROLE_OF_KIND[Kind.TRAINER] = Role.TRAINER
_ROLE_OF_KIND[list(GRAPH_NODE_KINDS)] = Role.GRAPH


@derived
def event_roles(trace: Trace) -> npt.NDArray[np.int8]:
    """Return int8[n], the Role of every slice or instant (HOST for what is neither)."""
    role: npt.NDArray[np.int8] = _ROLE_OF_KIND[event_kinds(trace)]
    engines = thread_engines(trace) >= 0
    if engines.any():
        role[engines[trace.events.thread] & (role == Role.HOST)] = Role.DEVICE
    role[event_phase_mask(trace, INSTANT_PHASES)] = Role.INSTANT
    return role


def stream_roles(trace: Trace) -> list[str]:
    """Return, by thread code, what a stream spends most time on: "compute", "communication" or "copy"."""
    rows = rows_of_kind(trace, *DEVICE_KINDS)
    work = np.where(event_kinds(trace)[rows] == Kind.KERNEL, 0, 2)
    work[is_communication_kernel(trace)[rows]] = 1
    time = event_ends(trace)[rows] - trace.events.start[rows] + 1e-3  # so that slices of 0 ns count
    key = trace.events.thread[rows].astype(np.int64) * 3 + work
    spent = np.bincount(key, time, minlength=3 * len(trace.threads)).reshape(-1, 3)
    return [("compute", "communication", "copy")[most] for most in spent.argmax(1).tolist()]


def thread_roles(trace: Trace) -> tuple[int, set[int]]:
    """Return (code of the main thread or NO_CODE, codes of the threads that run the backward pass).

    The main thread is the one with the most steps, else with the most operators.
    """
    operators = rows_of_kind(trace, Kind.CPU_OP, Kind.ANNOTATION)
    threads = trace.events.thread[operators]
    if len(threads) == 0:
        return NO_CODE, set()
    steps = name_mask(trace.strings, is_step)[trace.events.name[operators]]
    main = int(np.bincount(threads[steps] if steps.any() else threads).argmax())
    forward_thread = trace.arg_int("Fwd thread id", operators)
    backward = set(distinct_numbers(threads[(forward_thread != ABSENT) & (forward_thread != 0)]))
    return main, backward - {main}


class ThreadEventCounts(msgspec.Struct, frozen=True):
    """Numbers of events by thread code and Role, each int64[threads, roles].

    slices    "X" events and matched "B"/"E" pairs
    instants  instant events
    untimed   slices and instants without a time
    python    slices that are Python frames
    spans     slices that the profiler recorded about itself
    memory    instants that are allocations
    """

    slices: Int64
    instants: Int64
    untimed: Int64
    python: Int64
    spans: Int64
    memory: Int64


def count_thread_events(trace: Trace) -> ThreadEventCounts:
    """Count the slices and instants of every thread and role, and the sorts of them."""
    role, slices = event_roles(trace), all_slices(trace)
    kind = event_kinds(trace)
    sorts = (
        slices,
        trace.events.start == ABSENT,
        slices & (kind == Kind.PYTHON),
        slices & (kind == Kind.SPAN),
        is_memory_event(trace),
    )
    counted = slices | (role == Role.INSTANT)
    # One code for all sorts of an event, so that all are counted in one pass; the last is that of other events.
    size = (len(trace.threads) * len(Role)) << len(sorts)
    total = np.zeros(size, np.int64)
    at_once = max(_COUNTED_AT_ONCE, size)
    for begin in range(0, len(trace), at_once):
        part = slice(begin, begin + at_once)
        sort = np.zeros(len(role[part]), np.int16)
        for bit, mask in enumerate(sorts):
            sort |= mask[part].astype(np.int16) << bit
        code = trace.events.thread[part] * np.int64(len(Role) << len(sorts))
        code += (role[part].astype(np.int16) << len(sorts)) | sort
        code[~counted[part]] = size
        total += np.bincount(code, minlength=size)[:size]
    table = total.reshape(len(trace.threads), len(Role), -1)
    combination = np.arange(table.shape[2])
    counts = [table[:, :, combination >> bit & 1 == 1].sum(2) for bit in range(len(sorts))]
    return ThreadEventCounts(
        slices=counts[0],
        instants=table.sum(2) - counts[0],
        untimed=counts[1],
        python=counts[2],
        spans=counts[3],
        memory=counts[4],
    )


def thread_devices_and_streams(trace: Trace) -> tuple[dict[int, int | None], dict[int, int | None]]:
    """Return (devices, streams) by code of the threads that carry device work, annotations or synchronization."""
    rows = rows_of_kind(trace, *DEVICE_KINDS, *GRAPH_NODE_KINDS, Kind.DEVICE_ANNOTATION, Kind.SYNC)

    def by_code(values: Int64) -> dict[int, int | None]:
        """Return the first known value of each thread code; waits recorded on a stream may have none."""
        ordered = rows[np.argsort(values[rows] == ABSENT, kind="stable")]
        codes, first = np.unique(trace.events.thread[ordered], return_index=True)
        first_values = values[ordered[first]].tolist()
        return {
            code: None if value == ABSENT else value
            for code, value in zip(codes.tolist(), first_values, strict=True)
        }

    return by_code(device_ids(trace)), by_code(stream_ids(trace))
