"""Live memory at an instant: blocks allocated and not yet released, grouped, and bytes from before the trace."""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.memory.blocks import allocation_stacks
from torch_tb_profiler.analyses.shared.call_stacks import DistinctStacks
from torch_tb_profiler.analyses.shared.grouping import Groups, group
from torch_tb_profiler.analyses.shared.memory_curve import (
    MemoryLevels,
    RecordWindow,
    device_block_mask,
    first_peak,
)
from torch_tb_profiler.model.memory.blocks import OLDER, memory_blocks
from torch_tb_profiler.model.memory.events import memory_names, memory_records
from torch_tb_profiler.model.modules import modules
from torch_tb_profiler.model.trace import ABSENT, Int32, Int64, Trace

LiveGrouping = Literal["operator", "module", "stack", "size"]
"""What the blocks of a group share."""


class LiveGroup(msgspec.Struct, frozen=True):
    """Live blocks that share an operator, a module, a stack or a size.

    bytes       of all of them
    largest     position in `memory_records` of the largest one's allocation; size: its bytes
    frames      the stack of the largest, innermost frame first, where blocks are grouped by stack
    """

    blocks: int
    bytes: int
    largest: int
    size: int
    frames: tuple[str, ...]


class LiveMemory(msgspec.Struct, frozen=True):
    """Live blocks of a device after one of its records; sizes in bytes.

    blocks      how many; bytes: of all of them
    groups      a page of them, most bytes first; total_groups: without paging
    allocated, reserved  totals as recorded, None where they are not
    older       allocated before the trace or unseen; None without totals, or where they contradict the blocks
    older_released  how much of it is released later in the trace
    """

    blocks: int
    bytes: int
    groups: tuple[LiveGroup, ...]
    total_groups: int
    allocated: int | None
    reserved: int | None
    older: int | None
    older_released: int


def find_record(level: MemoryLevels, window: RecordWindow, time: int | None) -> int:
    """Return the index of the last record up to `time` (None: of the peak in the window); -1 before the first."""
    if time is not None:
        return int(np.searchsorted(level.time, time, "right")) - 1
    top = first_peak(level.allocated, window.first_record, window.high)
    return int(np.searchsorted(level.time, window.end, "right")) - 1 if top is None else top.index


def live_memory(
    trace: Trace, level: MemoryLevels, index: int, group_by: LiveGrouping, rows: slice = slice(None)
) -> LiveMemory:
    """Return what is live after the record `index` of `level` (-1: before the first), with the groups `rows`."""
    blocks = memory_blocks(trace)
    position = int(level.positions[index]) if index >= 0 else -1
    on_device = device_block_mask(trace, level)
    live = np.flatnonzero(on_device & blocks.live_after(position))
    sizes = blocks.size[live]
    known = int(sizes.sum())
    released_later = on_device & (blocks.state == OLDER) & (blocks.release > position)
    before = int(ABSENT) if level.relative else bytes_before_trace(trace, level)
    total = int(level.allocated[index]) if index >= 0 and not level.relative else before
    groups, stacks = _group_blocks(trace, blocks.allocation[live], sizes, group_by)
    return LiveMemory(
        blocks=len(live),
        bytes=known,
        groups=_find_largest_groups(groups, stacks, blocks.allocation[live], sizes, rows),
        total_groups=len(groups),
        allocated=None if index < 0 or total == ABSENT else total,
        reserved=None if index < 0 or level.reserved[index] == ABSENT else int(level.reserved[index]),
        older=total - known if total != ABSENT and total >= known else None,
        older_released=int(blocks.size[released_later].sum()),
    )


def bytes_before_trace(trace: Trace, level: MemoryLevels) -> int:
    """Return the bytes allocated before the first record of a device, ABSENT where its total is unknown."""
    if level.allocated[0] == ABSENT:
        return int(ABSENT)
    return int(level.allocated[0] - memory_records(trace).size[level.positions[0]])


def _find_largest_groups(
    groups: Groups, stacks: DistinctStacks | None, allocation: Int32, sizes: Int64, rows: slice
) -> tuple[LiveGroup, ...]:
    counts, sums = groups.counts, groups.sums(sizes)
    largest_first = np.lexsort((np.arange(len(sizes)), -sizes, groups.which))
    largest = largest_first[np.cumsum(counts) - counts]
    return tuple(
        LiveGroup(
            blocks=int(counts[code]),
            bytes=int(sums[code]),
            largest=int(allocation[largest[code]]),
            size=int(sizes[largest[code]]),
            frames=stacks.frames[int(stacks.which[largest[code]])] if stacks is not None else (),
        )
        for code in np.argsort(-sums, kind="stable")[rows].tolist()
    )


def _group_blocks(
    trace: Trace, allocation: Int32, sizes: Int64, group_by: LiveGrouping
) -> tuple[Groups, DistinctStacks | None]:
    if group_by == "size":
        return group(sizes), None
    if group_by == "module":
        return group(modules(trace).code[memory_records(trace).rows[allocation]]), None
    if group_by == "stack":
        stacks = allocation_stacks(trace, allocation)
        return group(stacks.which), stacks
    return group(memory_names(trace)[0][allocation]), None
