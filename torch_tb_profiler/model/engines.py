"""Executions on a device with separate engines: a node of a Gaudi graph runs on many engines of a class at once.

TPC 0  [add      ]   [add      ]
TPC 1   [add      ]   [add     ]
        execution 0   execution 1        each from its first begin to its last end

An execution counts as one call.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.devices import device_ids
from torch_tb_profiler.model.kinds import Kind, event_ends, event_kinds, event_lengths, rows_of_kind
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int32, Int64, Trace
from torch_tb_profiler.model.vendors.gaudi import thread_engines

_KEYS = ("recipeId", "recipeName", "EventName")
"""Arguments that are equal in all kernels of one execution."""


class EngineExecutions(msgspec.Struct, frozen=True):
    """The execution that each of n events is part of.

    number  int64[n]  number of a kernel's execution; a kernel of another device has one of its own; else NO_CODE
    length  int64[n]  ns from the first begin to the last end of the execution; of other events their own length
    """

    number: Int64
    length: Int64


@derived
def engine_executions(trace: Trace) -> EngineExecutions:
    """Group kernels of one name, recipe and class of engines that overlap, with at most one on each engine."""
    number = np.full(len(trace), NO_CODE, np.int64)
    length = event_ends(trace) - trace.events.start
    kernels = rows_of_kind(trace, Kind.KERNEL)
    number[kernels] = np.arange(len(kernels))
    engine = thread_engines(trace)[trace.events.thread[kernels]]
    rows = kernels[engine >= 0]
    if len(rows):
        start, end = trace.events.start[rows], event_ends(trace)[rows]
        texts = [trace.arg_codes(key, rows)[0] for key in _KEYS]
        keys: list[npt.NDArray[np.integer[Any]]] = [device_ids(trace)[rows], engine[engine >= 0], *texts]
        keys.append(trace.events.name[rows])
        order = np.lexsort((start, *keys))
        same_key = np.ones(len(rows), np.bool_)
        same_key[0] = False
        for key in keys:
            same_key[1:] &= np.diff(key[order]) == 0
        first = _is_first(same_key, trace.events.thread[rows][order], start[order], end[order])
        execution = np.cumsum(first) - 1
        begins = np.flatnonzero(first)
        lengths = np.maximum.reduceat(end[order], begins) - np.minimum.reduceat(start[order], begins)
        number[rows[order]] = len(kernels) + execution
        length[rows[order]] = lengths[execution]
    return EngineExecutions(number, length)


def _is_first(same_key: Bool, thread: Int32, start: Int64, end: Int64) -> Bool:
    """Return bool[k]: kernels that begin an execution; kernels by key and start.

    same_key  bool[k]  the kernel has the key of the previous one
    """
    first = ~same_key
    seen: set[int] = set()
    reach = 0
    columns = zip(same_key.tolist(), thread.tolist(), start.tolist(), end.tolist(), strict=True)
    for position, (is_same, lane, begin, finish) in enumerate(columns):
        if not is_same or lane in seen or begin >= reach:
            first[position] = True
            seen, reach = set(), finish
        seen.add(lane)
        reach = max(reach, finish)
    return first


def call_durations(trace: Trace, rows: Int32) -> Int64:
    """Return int64[k] ns: the length of the execution of each kernel in `rows`; other events have their own."""
    if (thread_engines(trace) >= 0).any():
        return engine_executions(trace).length[rows]
    return event_lengths(trace, rows)


def deduplicate_executions(trace: Trace, rows: Int32) -> Int32:
    """Drop from `rows` (ascending) the kernels that aren't the first of their execution; keep all other events."""
    if not (thread_engines(trace) >= 0).any():
        return rows
    is_kernel = event_kinds(trace)[rows] == Kind.KERNEL
    _, first = np.unique(engine_executions(trace).number[rows[is_kernel]], return_index=True)
    remaining: Int32 = np.sort(np.concatenate([rows[is_kernel][first], rows[~is_kernel]]))
    return remaining
