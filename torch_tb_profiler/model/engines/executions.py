"""Executions: a node of a Gaudi graph runs on many engines of a class at once, and is one call.

TPC 0  [add      ]   [add      ]
TPC 1   [add      ]   [add     ]
        execution 0   execution 1        from the first begin to the last end of each
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from torch_tb_profiler.model.devices import device_ids
from torch_tb_profiler.model.kinds import Kind, event_ends, event_kinds, rows_of_kind
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int32, Int64, Trace, derived
from torch_tb_profiler.model.vendors.gaudi import engines

_KEYS = ("recipeId", "recipeName", "EventName")


class Executions(msgspec.Struct, frozen=True):
    """Of every event, whether it is part of an execution on several engines.

    number  int64[n]  which execution a kernel is part of; kernels of other devices are one each; else NO_CODE
    length  int64[n]  ns from the first begin to the last end of the event's execution; of other events their own
    """

    number: Int64
    length: Int64


@derived
def executions(trace: Trace) -> Executions:
    """Kernels of one name, recipe and class of engines that overlap, at most one on each engine."""
    number = np.full(len(trace), NO_CODE, np.int64)
    length = event_ends(trace) - trace.events.start
    kernels = rows_of_kind(trace, Kind.KERNEL)
    number[kernels] = np.arange(len(kernels))
    engine = engines(trace)[trace.events.thread[kernels]]
    rows = kernels[engine >= 0]
    if len(rows):
        start, end = trace.events.start[rows], event_ends(trace)[rows]
        texts = [trace.arg_codes(key, rows)[0] for key in _KEYS]
        keys: list[npt.NDArray[np.integer[Any]]] = [device_ids(trace)[rows], engine[engine >= 0], *texts]
        keys.append(trace.events.name[rows])
        order = np.lexsort((start, *keys))
        same = np.ones(len(rows), np.bool_)
        same[0] = False
        for key in keys:
            same[1:] &= np.diff(key[order]) == 0
        first = _first_of_each(same, trace.events.thread[rows][order], start[order], end[order])
        which = np.cumsum(first) - 1
        begins = np.flatnonzero(first)
        whole = np.maximum.reduceat(end[order], begins) - np.minimum.reduceat(start[order], begins)
        number[rows[order]] = len(kernels) + which
        length[rows[order]] = whole[which]
    return Executions(number, length)


def _first_of_each(same: Bool, thread: Int32, start: Int64, end: Int64) -> Bool:
    """bool[k]: where an execution begins, of kernels by key and start; `same`: of the key of the one before."""
    first = ~same
    seen: set[int] = set()
    reach = 0
    for at, (alike, lane, begin, finish) in enumerate(
        zip(same.tolist(), thread.tolist(), start.tolist(), end.tolist(), strict=True)
    ):
        if not alike or lane in seen or begin >= reach:
            first[at] = True
            seen, reach = set(), finish
        seen.add(lane)
        reach = max(reach, finish)
    return first


def call_lengths(trace: Trace, rows: Int32) -> Int64:
    """int64[k] ns: how long the execution takes that each of these kernels is part of; other events their own."""
    if (engines(trace) >= 0).any():
        return executions(trace).length[rows]
    return (event_ends(trace) - trace.events.start)[rows]


def one_each(trace: Trace, rows: Int32) -> Int32:
    """int32[k]: of the kernels among some rows (ascending) the first of each execution; all others as they are."""
    if not (engines(trace) >= 0).any():
        return rows
    kernel = event_kinds(trace)[rows] == Kind.KERNEL
    _, first = np.unique(executions(trace).number[rows[kernel]], return_index=True)
    kept: Int32 = np.sort(np.concatenate([rows[kernel][first], rows[~kernel]]))
    return kept
