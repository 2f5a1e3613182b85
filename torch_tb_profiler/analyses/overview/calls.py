"""Runtime calls for which the device waits: those that start something up, allocate, or wait themselves."""

from __future__ import annotations

import re

import msgspec
import numpy as np

from torch_tb_profiler.base.arrays import median
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.kinds import Kind, event_ends, rows_of_kind
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import Bool, Int32, Trace, name_mask

SLOW_NS = 1_000_000
"""No call that only hands over work takes so long."""

SLOW_LAUNCH = 20
"""Nor a launch so many times as long as the median launch."""

_VENDOR = re.compile(r"^(?:cu|hip)[A-Z]|^(?:cuda|hip)[A-Z]")
_LAUNCH = re.compile(r"Launch")
_WAIT = re.compile(r"Synchronize|^(?:cuda|hip)Memcpy(?!.*Async)")
_COPY = re.compile(r"Memcpy|Memset")
_MEMORY = re.compile(
    r"^(?:cuda|hip)(?:ExtMalloc|Free(?!Async)|HostAlloc|HostFree|HostMalloc|HostRegister|Malloc(?!Async|FromPool))|"
    r"^cuMem(?:AddressReserve|Alloc(?!Async)|Create|Free(?!Async)|Map|Release|SetAccess|Unmap)"
)


class Calls(msgspec.Struct, frozen=True):
    """Rows of CUDA and HIP calls; int32.

    waiting     that wait for the device
    allocating  that ask for memory or give it back, in steps of which most do so
    starting    that take long and not in most steps: contexts, modules, the first blocks of an allocator
    """

    waiting: Int32
    allocating: Int32
    starting: Int32


@derived
def calls(trace: Trace) -> Calls:
    """Every call at most once."""
    rows = rows_of_kind(trace, Kind.RUNTIME, Kind.DRIVER)
    rows = rows[_named(trace, rows, _VENDOR)]
    launch, wait = _named(trace, rows, _LAUNCH), _named(trace, rows, _WAIT)
    memory = _named(trace, rows, _MEMORY)
    allocating = memory if _recurs(trace, rows[memory]) else np.zeros(len(rows), np.bool_)
    duration = trace.events.duration[rows]
    usual = median(duration[launch]) if launch.any() else 0.0
    slow = (duration >= SLOW_NS) & ~wait & ~allocating & ~_named(trace, rows, _COPY)
    slow &= ~launch | (duration > SLOW_LAUNCH * usual)
    starting = rows[slow]
    if _recurs(trace, starting):
        starting = starting[:0]
    return Calls(rows[wait], rows[allocating], starting)


def _named(trace: Trace, rows: Int32, pattern: re.Pattern[str]) -> Bool:
    names = trace.events.name[rows]
    named: Bool = name_mask(trace.strings, pattern.search, names)[names]
    return named


def _recurs(trace: Trace, rows: Int32) -> bool:
    """True if they are in more than half of three complete steps or more."""
    spans = steps(trace)
    count = int(spans.complete.sum())
    if count < 3:
        return False
    at = np.searchsorted(spans.host_starts, trace.events.start[rows], "right") - 1
    inside = at[(at >= 0) & (event_ends(trace)[rows] <= spans.host_ends[at])]
    return 2 * len(np.unique(inside[spans.complete[inside]])) > count
