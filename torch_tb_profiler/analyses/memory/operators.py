"""Memory per operator: what its calls allocate and leave behind, with and without nested operators."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.grouping import Groups, group
from torch_tb_profiler.analyses.shared.memory_curve import Levels, in_range
from torch_tb_profiler.model.kinds import event_ends
from torch_tb_profiler.model.memory.events import memory_operators, memory_records
from torch_tb_profiler.model.operators import operators, sum_with_nested
from torch_tb_profiler.model.trace import Int32, Int64, Trace


class OperatorMemory(msgspec.Struct, frozen=True):
    """Operators with memory events, one group per name; columns of length g.

    first            int32  row of the first call in the range
    calls            int64  that overlap the range
    increase         int64  bytes allocated - released; count: of allocations; size: bytes allocated
    self_...         not in a nested operator
    outside_...      of the events that no operator surrounds
    """

    first: Int32
    calls: Int64
    increase: Int64
    self_increase: Int64
    count: Int64
    self_count: Int64
    size: Int64
    self_size: Int64
    outside_increase: int
    outside_count: int
    outside_size: int


def operator_memory(trace: Trace, level: Levels, begin: int | None, end: int | None) -> OperatorMemory:
    """Statistics of a device's memory events in [begin, end]."""
    operator_calls, records = operators(trace).rows, memory_records(trace)
    at = level.positions[in_range(level.time, begin, end)]
    owner, size = memory_operators(trace)[at], records.size[at]
    allocated = np.maximum(size, 0)
    columns = (size, (size > 0).astype(np.int64), allocated)
    selves = [_sums(owner, column, len(operator_calls)) for column in columns]
    totals = [sum_with_nested(trace, column) for column in selves]
    calls = np.flatnonzero(_overlapping(trace, operator_calls, begin, end))
    groups = group(trace.events.name[operator_calls[calls]])
    sums = [groups.sums(column[calls]) for column in (*totals, *selves)]
    touched = np.flatnonzero(_touched(groups, [column[calls] for column in totals]))
    outside = owner < 0
    return OperatorMemory(
        first=operator_calls[calls[groups.first[touched]]],
        calls=groups.counts[touched],
        increase=sums[0][touched],
        self_increase=sums[3][touched],
        count=sums[1][touched],
        self_count=sums[4][touched],
        size=sums[2][touched],
        self_size=sums[5][touched],
        outside_increase=int(size[outside].sum()),
        outside_count=int((size[outside] > 0).sum()),
        outside_size=int(allocated[outside].sum()),
    )


def _sums(owner: Int32, values: Int64, count: int) -> Int64:
    sums = np.zeros(count, np.int64)
    known = owner >= 0
    np.add.at(sums, owner[known], values[known])
    return sums


def _overlapping(trace: Trace, rows: Int32, begin: int | None, end: int | None) -> np.ndarray:
    inside = np.ones(len(rows), np.bool_)
    if end is not None:
        inside &= trace.events.start[rows] <= end
    if begin is not None:
        inside &= event_ends(trace)[rows] >= begin
    return inside


def _touched(groups: Groups, columns: list[Int64]) -> np.ndarray:
    """Groups where some call allocates or releases: sums alone may cancel."""
    some = np.zeros(len(groups.which), np.bool_)
    for column in columns:
        some |= column != 0
    touched: np.ndarray = np.bincount(groups.which, some, minlength=len(groups)) > 0
    return touched
