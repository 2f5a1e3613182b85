"""Find the calls of the host for which the device waits: waits, copies, allocations, and slow first calls."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.base.arrays import cells_of_rows, distinct, median, search_sorted
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.base.patterns import Words, lazy_regex
from torch_tb_profiler.model.calls.calltree import enclosing_operators
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.kinds import (
    Kind,
    codes_of_kinds,
    event_ends,
    rows_in_mask,
    rows_named,
    rows_of_kind,
)
from torch_tb_profiler.model.schedule.blocking import WaitKind, blocking_calls
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int32, Trace, name_mask, rows_mask

MIN_LONG_CALL_NS = 1_000_000
"""A call that takes longer does more than submit work."""

SLOW_LAUNCH_RATIO = 20
"""A launch this many times slower than the median launch does more than submit work."""

_VENDOR = lazy_regex(r"^(?:cu|cuda|hip)[A-Z]")
_LAUNCH = Words("Launch")
_WAIT = Words("Synchronize", ("Memcpy", r"^(?:cuda|hip)Memcpy(?!.*Async)"))
_COPY = Words("Memcpy Memset")
_TO_HOST = Words("DtoH DeviceToHost")
_WITH_HOST = Words("DtoH HtoD DeviceToHost HostToDevice")
_READS_SCALAR = Words("_local_scalar_dense", ("aten::item", r"^aten::item$"))
_MEMORY = Words(
    "",
    ("Malloc", r"^(?:cuda|hip)(?:ExtMalloc|HostMalloc|Malloc(?!Async|FromPool))"),
    ("Free", r"^(?:cuda|hip)(?:HostFree|Free(?!Async))"),
    ("Host", r"^(?:cuda|hip)Host(?:Alloc|Register)"),
    ("cuMem", r"^cuMem(?:AddressReserve|Alloc(?!Async)|Create|Free(?!Async)|Map|Release|SetAccess|Unmap)"),
)


class CopyingCalls(msgspec.Struct, frozen=True):
    """Calls that wait for copies between host and device; rows, int32 each.

    calls    they copy from or to memory that isn't pinned, or wait in an operator that copies (`aten::copy_`)
    to_host  the copies to the host that they wait for
    scalars  calls that copy a single value, as `tensor.item()` does
    """

    calls: Int32
    to_host: Int32
    scalars: Int32


@derived
def copying_calls(trace: Trace) -> CopyingCalls:
    """Find the calls that wait for copies."""
    copies = rows_named(trace, _WITH_HOST.search, Kind.MEMCPY)
    links, blocking = device_links(trace), blocking_calls(trace)
    launch = cells_of_rows(links.rows, links.launch, copies, NO_CODE)
    operator = cells_of_rows(links.rows, links.operator, copies, NO_CODE)
    is_scalar = _names_match(trace, operator, _READS_SCALAR) & (operator >= 0)
    blocks = np.isin(launch, blocking.call[blocking.kind == WaitKind.COPY]) & (launch >= 0)
    waiting = blocking_call_groups(trace).waiting
    around = enclosing_operators(trace)[waiting]
    in_copying = (around >= 0) & np.isin(around, operator[~is_scalar])
    awaited = ~is_scalar & (blocks | (np.isin(operator, around[in_copying]) & (operator >= 0)))
    mine = copies[awaited]
    return CopyingCalls(
        distinct(np.concatenate([launch[blocks & ~is_scalar], waiting[in_copying]])).astype(np.int32),
        copies_to_host(trace, mine),
        launch[blocks & is_scalar],
    )


def synchronizing_calls(trace: Trace) -> Int32:
    """Return the calls that wait for the device, also to read a single value, but not those that copy more."""
    copying = copying_calls(trace)
    waiting = blocking_call_groups(trace).waiting
    waiting = waiting[~rows_mask(trace, copying.calls)[waiting]]
    return distinct(np.concatenate([waiting, copying.scalars])).astype(np.int32)


def copies_to_host(trace: Trace, copies: Int32) -> Int32:
    """Return those of some copies that go from a device to the host."""
    return copies[_names_match(trace, copies, _TO_HOST)]


class BlockingCallGroups(msgspec.Struct, frozen=True):
    """Rows of CUDA and HIP calls for which the device waits, int32 each.

    waiting     calls that wait for the device themselves
    allocating  calls that allocate or free driver memory, if most steps make such calls
    starting    slow calls that most steps don't make: contexts, modules, the first blocks of an allocator
    """

    waiting: Int32
    allocating: Int32
    starting: Int32


@derived
def blocking_call_groups(trace: Trace) -> BlockingCallGroups:
    """Find the blocking calls; each is in one group at most."""
    kinds = Kind.RUNTIME, Kind.DRIVER
    rows, codes, durations = rows_of_kind(trace, *kinds), codes_of_kinds(trace, *kinds), trace.events.duration
    vendor, launch, wait, memory, copy = (
        name_mask(trace.strings, rule.search, codes) for rule in (_VENDOR, _LAUNCH, _WAIT, _MEMORY, _COPY)
    )
    waiting, allocating = (rows_in_mask(trace, rows, vendor & each) for each in (wait, memory))
    starting = rows[durations.take(rows) >= MIN_LONG_CALL_NS]
    names_of_long = trace.events.name.take(starting)
    others = vendor & ~wait & ~copy
    if _recurs(trace, allocating):
        others &= ~memory
    else:
        allocating = allocating[:0]
    is_launch = launch.take(names_of_long)
    if is_launch.any():
        median_launch = median(durations.take(rows_in_mask(trace, rows, vendor & launch)))
        is_launch &= durations.take(starting) <= SLOW_LAUNCH_RATIO * median_launch
    starting = starting[others.take(names_of_long) & ~is_launch]
    if _recurs(trace, starting):
        starting = starting[:0]
    return BlockingCallGroups(waiting, allocating, starting)


def _names_match(trace: Trace, rows: Int32, rule: Words) -> Bool:
    names = trace.events.name.take(rows)
    matches: Bool = name_mask(trace.strings, rule.search, names).take(names)
    return matches


_MIN_RECURRING_STEPS = 3
"""With fewer complete steps, most of them hold a call that happens once."""


def _recurs(trace: Trace, rows: Int32) -> bool:
    """Return whether more than half of the complete steps hold such calls; False with few steps."""
    spans = steps(trace)
    count = int(spans.complete.sum())
    if count < _MIN_RECURRING_STEPS:
        return False
    step = search_sorted(spans.host_starts, trace.events.start[rows], "right") - 1
    inside = step[(step >= 0) & (event_ends(trace)[rows] <= spans.host_ends[step])]
    return 2 * len(distinct(inside[spans.complete[inside]])) > count
