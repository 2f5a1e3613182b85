"""Slices and counters that a file beside a trace recorded: rows of the trace, cached and drawn like all others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from torch_tb_profiler.base.memo import Memo
from torch_tb_profiler.model.trace import ABSENT, ArgColumn, Events, Thread, Trace

COUNTER_CATEGORY = "counter"


class AddedSlice(NamedTuple):
    """A slice to add; start and end in ns since the trace's start."""

    category: str
    name: str
    thread: Thread
    start: int
    end: int


class AddedSample(NamedTuple):
    """A value of a counter to add, whose name is new to the trace; time in ns since the trace's start."""

    counter: str
    thread: Thread
    time: int
    value: float


def add_counters(trace: Trace, samples: Sequence[AddedSample]) -> Trace:
    """Return the trace with the samples after its last row, each value in the argument named like its counter."""
    rows = np.arange(len(trace), len(trace) + len(samples), dtype=np.int32)
    args = {}
    for name in dict.fromkeys(each.counter for each in samples):
        mine = np.array([each.counter == name for each in samples])
        values = np.array([each.value for each in samples if each.counter == name], np.float64)
        args[name] = ArgColumn("float", rows[mine], values)
    events = [AddedSlice(COUNTER_CATEGORY, each.counter, each.thread, each.time, each.time) for each in samples]
    return _append(trace, events, args, ord("C"))


def add_slices(trace: Trace, slices: Sequence[AddedSlice], args: Mapping[str, ArgColumn]) -> Trace:
    """Return the trace with the slices after its last row, and with these arguments, whose names must be new."""
    return _append(trace, slices, args, ord("X"))


def _append(trace: Trace, slices: Sequence[AddedSlice], args: Mapping[str, ArgColumn], phase: int) -> Trace:
    codes = {text: code for code, text in enumerate(trace.strings)}
    threads = {thread: code for code, thread in enumerate(trace.threads)}
    added = Events(
        phase=np.full(len(slices), phase, np.uint8),
        category=np.array([codes.setdefault(each.category, len(codes)) for each in slices], np.int32),
        name=np.array([codes.setdefault(each.name, len(codes)) for each in slices], np.int32),
        thread=np.array([threads.setdefault(each.thread, len(threads)) for each in slices], np.int32),
        start=np.array([each.start for each in slices], np.int64),
        duration=np.array([each.end - each.start for each in slices], np.int64),
        id=np.full(len(slices), ABSENT, np.int64),
    )
    joined = Events(**{name: np.append(getattr(trace.events, name), getattr(added, name)) for name in _COLUMNS})
    return replace(
        trace,
        events=joined,
        strings=list(codes),
        threads=list(threads),
        args={**trace.args, **args},
        _memo=Memo(),
    )


_COLUMNS = ("phase", "category", "name", "thread", "start", "duration", "id")
