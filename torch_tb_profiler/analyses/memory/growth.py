"""Memory that may leak: blocks of several steps, allocated at one place, that never come back.

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

from torch_tb_profiler.analyses.memory.allocations import allocation_stacks
from torch_tb_profiler.analyses.memory.blocks import blocks_of
from torch_tb_profiler.analyses.memory.live import allocated_before
from torch_tb_profiler.analyses.shared.grouping import group
from torch_tb_profiler.analyses.shared.memory_curve import Levels
from torch_tb_profiler.model.memory.blocks import UNKNOWN, has_addresses, memory_blocks
from torch_tb_profiler.model.memory.events import memory_names
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Int32, Int64, Trace

OUTLIVED = 2
"""A block that lives at the ends of so many steps stays for longer than a batch that waits for its turn."""

LEAST_BIRTHS = 3
"""Blocks of fewer steps may be caches that fill, or state that the optimizer makes."""

LEAST_STEPS = LEAST_BIRTHS + OUTLIVED - 1
"""Fewer do not show three steps whose blocks outlive two."""

LEAST_SHARE = 0.001
"""Blocks that hold less than this share of the peak together are no leak: a list of losses stays, too."""


class Holder(msgspec.Struct, frozen=True):
    """Blocks of one operator and one stack, of three steps or more, that live at the end of the last step.

    name    as `memory_names` spells it, None outside of operators
    live    int64[s]  their bytes at the end of each step
    growth  bytes at the end of the last step
    blocks  how many they are
    born    in how many steps they were allocated
    since   index of the first of these steps
    latest  the last of them: position of its allocation in `memory_records`
    """

    name: str | None
    live: Int64
    growth: int
    blocks: int
    born: int
    since: int
    latest: int


class Growth(msgspec.Struct, frozen=True):
    """Bytes of a device.

    live        int64[s]  at the end of each step
    growing     blocks of holders stay, and are not negligible; negligible: they would be, but for their size
    per_step    bytes of all holders / steps since the first of them holds; None where nothing grows
    traced      releases can be told from one another; else nobody knows what stays
    """

    live: Int64
    growing: bool
    negligible: bool
    per_step: int | None
    traced: bool
    holders: tuple[Holder, ...]


def growth(trace: Trace, level: Levels) -> Growth | None:
    """None in a trace without steps, and where the first events of the device have no totals.

    Holders, most growth first, only where memory grows.
    """
    recorded = steps(trace)
    if not recorded.recorded or (level.allocated == ABSENT).any():
        return None
    # Index of the last record of the device at the end of each step; -1: before all of them.
    index = np.searchsorted(level.time, recorded.host_ends, "right") - 1
    before = 0 if level.relative else allocated_before(trace, level)
    live = np.where(index >= 0, level.allocated[index], before)
    holders = sorted(_holders(trace, level, index), key=lambda holder: -holder.growth)
    total = sum(holder.growth for holder in holders)
    enough = total > LEAST_SHARE * int(level.allocated.max())
    growing = bool(holders) and enough
    since = min((holder.since for holder in holders), default=0)
    return Growth(
        live=live,
        growing=growing,
        negligible=bool(holders) and not enough,
        per_step=total // (len(live) - since) if growing else None,
        traced=has_addresses(trace),
        holders=tuple(holders) if growing else (),
    )


def _holders(trace: Trace, level: Levels, index: Int64) -> Iterator[Holder]:
    """`index`: of the last record of the device at the end of each step."""
    blocks, count = memory_blocks(trace), len(index)
    ends = np.where(index >= 0, level.positions[index], -1)
    begin = np.searchsorted(level.time, steps(trace).host_starts[:1], "left")
    first = level.positions[begin[0]] if begin[0] < len(level.positions) else len(trace)
    counted = blocks_of(trace, level) & (blocks.allocation >= first) & (blocks.state != UNKNOWN)
    # A block lives at the ends from the first one after its allocation to the last one before it is gone.
    born = np.searchsorted(ends, blocks.allocation, "left")
    dead = np.searchsorted(ends, blocks.end, "left")
    chosen = np.flatnonzero(counted & (born < count) & ((dead == count) | (dead - born >= OUTLIVED)))
    # Stacks, which take long, only part what has one name: what is too rare by name is so by name and stack.
    names = group(memory_names(trace)[0][blocks.allocation[chosen]]).which
    often = _often_born(names, born[chosen], dead[chosen], count)
    chosen, names = (each[np.isin(names, often)] for each in (chosen, names))
    if len(chosen) == 0:
        return
    allocation, born, dead = blocks.allocation[chosen], born[chosen], dead[chosen]
    places = group(names, allocation_stacks(trace, allocation).which)
    for place in _often_born(places.which, born, dead, count).tolist():
        of = places.members(place)
        kept = of[dead[of] == count]
        returned = of[dead[of] < count]
        if _leaks(born[kept], born[returned], count):
            yield _holder(trace, allocation[kept], born[kept], blocks.size[chosen[kept]], count)


def _often_born(place: Int64, born: Int64, dead: Int64, count: int) -> Int64:
    """The places of which enough steps made blocks that stayed to the last."""
    early = (dead == count) & (born <= count - OUTLIVED)
    births = np.unique(place[early] * count + born[early]) // count
    return np.flatnonzero(np.bincount(births, minlength=1) >= LEAST_BIRTHS)


def _leaks(born: Int64, returned: Int64, count: int) -> bool:
    """Whether the blocks of a place stay for good: `born` in which steps; others `returned` after two or more."""
    births = np.unique(born)
    # Of a window that moves on, the oldest goes first. What the first step makes may go at any time.
    if (returned > 0).any() and returned[returned > 0].min() < births[births > 0].min():
        return False
    # What fills up and then stays as it is, was silent for longer than ever before.
    return bool(count - 1 - births[-1] <= np.diff(births).max())


def _holder(trace: Trace, allocation: Int32, born: Int64, size: Int64, count: int) -> Holder:
    codes, texts = memory_names(trace)
    code, live = codes[allocation[0]], np.zeros(count, np.int64)
    np.add.at(live, born, size)
    return Holder(
        name=None if code == NO_CODE else texts[code],
        live=np.cumsum(live),
        growth=int(size.sum()),
        blocks=len(born),
        born=len(np.unique(born)),
        since=int(born.min()),
        latest=int(allocation[-1]),
    )
