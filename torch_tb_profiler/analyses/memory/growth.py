"""Memory that may leak: blocks allocated at one place in several steps and never released.

step          1       2       3       4       5
a leak        [--------------------------------   one block per step, none is released
                      [------------------------
                              [----------------
a batch       [---]   [----]  [-----] [------]    larger in each step, but each is released
a window      [----------------]                  the last two are kept: the oldest is released
                      [----------------]
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from torch_tb_profiler.analyses.memory.blocks import allocation_stacks
from torch_tb_profiler.analyses.memory.live import bytes_before_trace
from torch_tb_profiler.analyses.shared.grouping import group
from torch_tb_profiler.analyses.shared.memory_curve import MemoryLevels, device_block_mask
from torch_tb_profiler.model.memory.blocks import UNKNOWN, UNRELEASED, has_addresses, memory_blocks
from torch_tb_profiler.model.memory.events import memory_names
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Int32, Int64, Trace

MIN_STEP_ENDS = 2
"""A block live at the ends of this many steps outlives a batch that was loaded for the next step."""

MIN_ALLOCATING_STEPS = 3
"""Blocks allocated in fewer steps may be caches that fill, or optimizer state."""

MIN_STEPS = MIN_ALLOCATING_STEPS + MIN_STEP_ENDS - 1
"""Fewest steps of a trace in which a leak can show."""

MIN_PEAK_SHARE = 0.001
"""Blocks that together hold less than this share of the peak are no leak: a list of losses grows, too."""


MIN_LARGE_BYTES = 2**20
"""Smallest leak of a device that is named in sentences about another one."""


class GrowthHolder(msgspec.Struct, frozen=True):
    """Blocks of one operator and stack, allocated in three steps or more and never released.

    name    as `memory_names` spells it, None outside of operators
    live    int64[s]  their bytes at the end of each step
    growth  bytes at the end of the last step
    blocks  how many
    born    number of steps in which they were allocated
    since   index of the first of these steps
    latest  the newest block: position of its allocation in `memory_records`
    """

    name: str | None
    live: Int64
    growth: int
    blocks: int
    born: int
    since: int
    latest: int


class DeviceGrowth(msgspec.Struct, frozen=True):
    """Live memory of a device at the end of each step, in bytes, and whether it grows.

    live        int64[s]  at the end of each step
    growing     the blocks of `holders` stay allocated, are not negligible, and are not offset
    negligible  they are small
    offset      other memory is released, so that live memory rises by less than half of them
    per_step    bytes of all holders / steps since the first of them holds; None where nothing grows
    traced      releases are matched with allocations; else it is unknown what stays allocated
    """

    live: Int64
    growing: bool
    negligible: bool
    offset: bool
    per_step: int | None
    traced: bool
    holders: tuple[GrowthHolder, ...]

    @property
    def is_large(self) -> bool:
        """Return whether the blocks of the holders are worth naming where another device is spoken of."""
        return self.growing and sum(holder.growth for holder in self.holders) >= MIN_LARGE_BYTES


def memory_growth(trace: Trace, level: MemoryLevels) -> DeviceGrowth | None:
    """Return how live memory grows over the steps; holders, most growth first, only where it does.

    None in a trace without steps, and where the first events of the device have no totals.
    """
    recorded = steps(trace)
    if not recorded.recorded or (level.allocated == ABSENT).any():
        return None
    # Index of the last record of the device at the end of each step; -1: before all of them.
    index = np.searchsorted(level.time, recorded.host_ends, "right") - 1
    before = 0 if level.relative else bytes_before_trace(trace, level)
    live = np.where(index >= 0, level.allocated[index], before)
    holders = sorted(_find_holders(trace, level, index), key=lambda holder: -holder.growth)
    total = sum(holder.growth for holder in holders)
    significant = total > MIN_PEAK_SHARE * int(level.allocated.max())
    since = min((holder.since for holder in holders), default=0)
    offset = 2 * _rise_without_largest_drop(live, since, before) < total
    growing = bool(holders) and significant and not offset
    return DeviceGrowth(
        live=live,
        growing=growing,
        negligible=bool(holders) and not significant,
        offset=significant and offset,
        per_step=total // (len(live) - since) if growing else None,
        traced=has_addresses(trace),
        holders=tuple(holders) if growing or (significant and offset) else (),
    )


def _rise_without_largest_drop(live: Int64, since: int, before: int) -> int:
    """Return by how much live memory rises from step `since` on; what is released once doesn't hide a leak.

    before  bytes before the first step
    """
    changes = np.diff(np.concatenate([[live[since - 1] if since else before], live[since:]]))
    return int(changes.sum()) - min(int(changes.min()), 0)


def _find_holders(trace: Trace, level: MemoryLevels, index: Int64) -> Iterator[GrowthHolder]:
    """Yield the holders; `index` has the last record of the device at the end of each step.

    What is released after the last step has been released: it was collected, such as the results of an epoch.
    """
    blocks, count = memory_blocks(trace), len(index)
    ends = np.where(index >= 0, level.positions[index], -1)
    begin = np.searchsorted(level.time, steps(trace).host_starts[:1], "left")
    first = level.positions[begin[0]] if begin[0] < len(level.positions) else len(trace)
    eligible = device_block_mask(trace, level) & (blocks.allocation >= first) & (blocks.state != UNKNOWN)
    # A block is live at the ends of the steps from the one it was allocated in to the one before its release.
    born = np.searchsorted(ends, blocks.allocation, "left")
    dead = np.searchsorted(ends, blocks.end, "left")
    chosen = np.flatnonzero(eligible & (born < count) & ((dead == count) | (dead - born >= MIN_STEP_ENDS)))
    # Stacks are slow to compute and only split names further: a name that is too rare needs none.
    names = group(memory_names(trace)[0][blocks.allocation[chosen]]).which
    stays = blocks.state == UNRELEASED
    frequent = _find_frequent_places(names, born[chosen], stays[chosen], count)
    chosen, names = (each[np.isin(names, frequent)] for each in (chosen, names))
    if len(chosen) == 0:
        return
    allocation, born, stays = blocks.allocation[chosen], born[chosen], stays[chosen]
    places = group(names, allocation_stacks(trace, allocation).which)
    for place in _find_frequent_places(places.which, born, stays, count).tolist():
        members = places.members(place)
        live = members[stays[members]]
        released = members[~stays[members]]
        if _leaks(born[live], born[released], count):
            yield _build_holder(trace, allocation[live], born[live], blocks.size[chosen[live]], count)


def _find_frequent_places(place: Int64, born: Int64, stays: Bool, count: int) -> Int64:
    """Return the places that allocated, in enough steps, blocks that are never released."""
    early = stays & (born <= count - MIN_STEP_ENDS)
    births = np.unique(place[early] * count + born[early]) // count
    return np.flatnonzero(np.bincount(births, minlength=1) >= MIN_ALLOCATING_STEPS)


def _leaks(born: Int64, released: Int64, count: int) -> bool:
    """Return whether the blocks of a place stay for good.

    born      steps in which the blocks that are still live were allocated
    released  the same of blocks that were released after two steps or more
    """
    births = np.unique(born)
    # A sliding window releases its oldest block first. Blocks of the first step may go at any time.
    if (released > 0).any() and released[released > 0].min() < births[births > 0].min():
        return False
    # A cache that is full has not allocated for longer than ever before.
    return bool(count - 1 - births[-1] <= np.diff(births).max())


def _build_holder(trace: Trace, allocation: Int32, born: Int64, size: Int64, count: int) -> GrowthHolder:
    codes, texts = memory_names(trace)
    code, live = codes[allocation[0]], np.zeros(count, np.int64)
    np.add.at(live, born, size)
    return GrowthHolder(
        name=None if code == NO_CODE else texts[code],
        live=np.cumsum(live),
        growth=int(size.sum()),
        blocks=len(born),
        born=len(np.unique(born)),
        since=int(born.min()),
        latest=int(allocation[-1]),
    )
