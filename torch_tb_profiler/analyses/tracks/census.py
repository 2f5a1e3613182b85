"""What the threads of a trace hold: events by role, and the device and stream that device work names."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.tracks.events import all_slices
from torch_tb_profiler.analyses.tracks.roles import Role, roles
from torch_tb_profiler.model.devices import device_ids, stream_ids
from torch_tb_profiler.model.kinds import DEVICE_KINDS, Kind, event_kinds, rows_of_kind
from torch_tb_profiler.model.memory.events import is_memory_event
from torch_tb_profiler.model.trace import ABSENT, Int64, Trace


class Census(msgspec.Struct, frozen=True):
    """Counts by thread code and Role, each int64[threads, roles].

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


def census(trace: Trace) -> Census:
    """Slices and instants of every thread and role, and how many of them are of each sort."""
    role, slices = roles(trace), all_slices(trace)
    rows = np.flatnonzero(slices | (role == Role.INSTANT))
    kind, is_slice = event_kinds(trace)[rows], slices[rows]
    sorts = (
        is_slice,
        trace.events.start[rows] == ABSENT,
        is_slice & (kind == Kind.PYTHON),
        is_slice & (kind == Kind.SPAN),
        is_memory_event(trace)[rows],
    )
    # One code for all sorts of an event, so that all are counted in one pass.
    code = (trace.events.thread[rows] * np.int64(len(Role)) + role[rows]) << len(sorts)
    for bit, mask in enumerate(sorts):
        code |= mask.astype(np.int64) << bit
    size = (len(trace.threads) * len(Role)) << len(sorts)
    table = np.bincount(code, minlength=size).reshape(len(trace.threads), len(Role), -1)
    combination = np.arange(table.shape[2])
    counts = [table[:, :, combination >> bit & 1 == 1].sum(2) for bit in range(len(sorts))]
    return Census(
        slices=counts[0],
        instants=table.sum(2) - counts[0],
        untimed=counts[1],
        python=counts[2],
        spans=counts[3],
        memory=counts[4],
    )


def device_and_stream(trace: Trace) -> tuple[dict[int, int | None], dict[int, int | None]]:
    """Device and stream of each thread code that carries device work, annotations or synchronization."""
    rows = rows_of_kind(trace, *DEVICE_KINDS, Kind.DEVICE_ANNOTATION, Kind.SYNC)

    def by_code(values: Int64) -> dict[int, int | None]:
        """Of each thread code the first value that is known; a wait beside the work may carry none."""
        ordered = rows[np.argsort(values[rows] == ABSENT, kind="stable")]
        codes, first = np.unique(trace.events.thread[ordered], return_index=True)
        first_values = values[ordered[first]].tolist()
        return {
            code: None if value == ABSENT else value
            for code, value in zip(codes.tolist(), first_values, strict=True)
        }

    return by_code(device_ids(trace)), by_code(stream_ids(trace))
