"""What lives at an instant: blocks allocated and not yet gone, in groups, and what is older than the trace."""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.call_stacks import Stacks, distinct_stacks
from torch_tb_profiler.analyses.shared.grouping import Groups, group
from torch_tb_profiler.analyses.shared.memory_curve import Levels, Window, peak
from torch_tb_profiler.model.memory.blocks import OLDER, memory_blocks
from torch_tb_profiler.model.memory.events import memory_calls, memory_names, memory_records
from torch_tb_profiler.model.modules.modules import modules
from torch_tb_profiler.model.trace import ABSENT, Int32, Int64, Trace

GroupBy = Literal["operator", "module", "stack", "size"]


class Live(msgspec.Struct, frozen=True):
    """Blocks that live after a record of a device, grouped.

    index      of the record in the levels, -1 for before all of them
    blocks     int64[b]  positions in `memory_blocks`; sizes: their bytes
    stacks     of the blocks, where they are grouped by stack
    older      bytes allocated before the trace or unseen, None without totals or where they contradict the blocks
    older_released  how much of it is released later in the trace
    """

    index: int
    blocks: Int64
    sizes: Int64
    groups: Groups
    stacks: Stacks | None
    older: int | None
    older_released: int


def instant(level: Levels, part: Window, at: int | None) -> int:
    """Index of the record that holds at a time; without one the highest of the window. -1: before all of them."""
    if at is not None:
        return int(np.searchsorted(level.time, at, "right")) - 1
    found = peak(level.allocated, part.held, part.high)
    return int(np.searchsorted(level.time, part.end, "right")) - 1 if found is None else found.index


def live(trace: Trace, level: Levels, index: int, group_by: GroupBy) -> Live:
    """What lives after the record at `index` (-1: before all of them)."""
    records, every = memory_records(trace), memory_blocks(trace)
    position = int(level.positions[index]) if index >= 0 else -1
    code = records.devices.index(level.device)
    first = np.where(every.allocation >= 0, every.allocation, every.release)
    mine = records.device[first] == code
    chosen = np.flatnonzero(mine & every.live_after(position))
    sizes = every.size[chosen]
    groups, stacks = _grouped(trace, every.allocation[chosen], sizes, group_by)
    later = mine & (every.state == OLDER) & (every.release > position)
    older: int | None = None
    if not level.relative:
        total = int(level.allocated[index]) if index >= 0 else _before(level, records.size)
        older = total - int(sizes.sum()) if total != ABSENT else None
        older = None if older is None or older < 0 else older
    return Live(index, chosen, sizes, groups, stacks, older, int(every.size[later].sum()))


def _before(level: Levels, sizes: Int64) -> int:
    """Allocated before the first record."""
    if level.allocated[0] == ABSENT:
        return int(ABSENT)
    return int(level.allocated[0] - sizes[level.positions[0]])


def start_and_end(trace: Trace, level: Levels) -> tuple[int | None, int | None]:
    """Bytes allocated before the first and after the last record of a device, None without totals."""
    if level.relative:
        return None, None
    first, last = _before(level, memory_records(trace).size), int(level.allocated[-1])
    return None if first == ABSENT else first, None if last == ABSENT else last


def _grouped(trace: Trace, allocation: Int32, sizes: Int64, group_by: GroupBy) -> tuple[Groups, Stacks | None]:
    if group_by == "size":
        return group(sizes), None
    if group_by == "module":
        return group(modules(trace).code[memory_records(trace).rows[allocation]]), None
    if group_by == "stack":
        stacks = allocation_stacks(trace, allocation)
        return group(stacks.which), stacks
    return group(memory_names(trace)[0][allocation]), None


def allocation_stacks(trace: Trace, positions: Int32) -> Stacks:
    """The Python stacks of records: those of their operators where they carry one, else the frames around them."""
    rows, calls = memory_records(trace).rows[positions], memory_calls(trace)[positions]
    carried = trace.arg_codes("Call stack", calls)[0] >= 0
    return distinct_stacks(trace, np.where(carried, calls, rows).astype(np.int32))
