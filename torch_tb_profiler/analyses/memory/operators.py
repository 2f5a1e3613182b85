"""Memory per operator: bytes that its calls allocate and release, with and without nested operators."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.grouping import Groups, group
from torch_tb_profiler.analyses.shared.memory_curve import MemoryLevels, time_mask
from torch_tb_profiler.model.kinds import event_ends
from torch_tb_profiler.model.memory.events import memory_operators, memory_records
from torch_tb_profiler.model.operators import operators, sum_with_nested
from torch_tb_profiler.model.trace import Int32, Int64, Trace


class OperatorMemory(msgspec.Struct, frozen=True):
    """Memory events of operators, one group per name; columns of length g.

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


def operator_memory(trace: Trace, level: MemoryLevels, begin: int | None, end: int | None) -> OperatorMemory:
    """Sum a device's memory events in [begin, end] (ns) by operator."""
    operator_calls, records = operators(trace).rows, memory_records(trace)
    positions = level.positions[time_mask(level.time, begin, end)]
    owner, size = memory_operators(trace)[positions], records.size[positions]
    allocated = np.maximum(size, 0)
    columns = (size, (size > 0).astype(np.int64), allocated)
    self_columns = [_sum_by_call(owner, column, len(operator_calls)) for column in columns]
    totals = [sum_with_nested(trace, column) for column in self_columns]
    calls = np.flatnonzero(_overlap_mask(trace, operator_calls, begin, end))
    groups = group(trace.events.name[operator_calls[calls]])
    sums = [groups.sums(column[calls]) for column in (*totals, *self_columns)]
    changed = np.flatnonzero(_changed_groups(groups, [column[calls] for column in totals]))
    outside = owner < 0
    return OperatorMemory(
        first=operator_calls[calls[groups.first[changed]]],
        calls=groups.counts[changed],
        increase=sums[0][changed],
        self_increase=sums[3][changed],
        count=sums[1][changed],
        self_count=sums[4][changed],
        size=sums[2][changed],
        self_size=sums[5][changed],
        outside_increase=int(size[outside].sum()),
        outside_count=int((size[outside] > 0).sum()),
        outside_size=int(allocated[outside].sum()),
    )


def _sum_by_call(owner: Int32, values: Int64, count: int) -> Int64:
    sums = np.zeros(count, np.int64)
    known = owner >= 0
    np.add.at(sums, owner[known], values[known])
    return sums


def _overlap_mask(trace: Trace, rows: Int32, begin: int | None, end: int | None) -> np.ndarray:
    inside = np.ones(len(rows), np.bool_)
    if end is not None:
        inside &= trace.events.start[rows] <= end
    if begin is not None:
        inside &= event_ends(trace)[rows] >= begin
    return inside


def _changed_groups(groups: Groups, columns: list[Int64]) -> np.ndarray:
    """Return which groups have a call that allocates or releases; sums alone may cancel out."""
    changes = np.zeros(len(groups.which), np.bool_)
    for column in columns:
        changes |= column != 0
    changed: np.ndarray = np.bincount(groups.which, changes, minlength=len(groups)) > 0
    return changed
