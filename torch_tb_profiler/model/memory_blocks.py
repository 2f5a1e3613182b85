"""Blocks of memory: each allocation with its release.

Within an address of a device, in order of time:

    alloc ---- free            a block
    alloc ---- alloc ...       the first is replaced: its release was not recorded, but it is gone
    free                       an older block: allocated before the trace, or unseen
    alloc                      unreleased when the trace ends
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from torch_tb_profiler.model.memory import memory_records
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Int32, Int64, Trace, derived

RELEASED, UNRELEASED, REPLACED, OLDER, UNKNOWN = range(5)
State = Literal["released", "unreleased", "replaced", "older", "unknown"]
STATES: tuple[State, ...] = ("released", "unreleased", "replaced", "older", "unknown")


@dataclass(frozen=True)
class Blocks:
    """Columns of length b, in order of the first record of each. Positions are those in `memory_records`.

    allocation  int32  position of the allocation, NO_CODE of an older block
    release     int32  position of the release, NO_CODE if there is none
    gone        int64  position from which on it is not live any more: of its release, or of the allocation that
                       replaced it; the number of records if it outlives the trace
    size        int64  bytes, positive
    state       int8   RELEASED, UNRELEASED, REPLACED, OLDER; UNKNOWN of an allocation without an address, whose
                       release cannot be told
    """

    allocation: Int32
    release: Int32
    gone: Int64
    size: Int64
    state: np.ndarray[tuple[int], np.dtype[np.int8]]

    def __len__(self) -> int:
        return len(self.size)

    def live_after(self, position: int) -> Bool:
        """bool[b]: blocks that live after the record at this position, as far as allocations are recorded."""
        seen = (self.allocation >= 0) & (self.state != UNKNOWN)
        live: Bool = seen & (self.allocation <= position) & (self.gone > position)
        return live


@derived
def memory_blocks(trace: Trace) -> Blocks:
    """All blocks of all devices."""
    records = memory_records(trace)
    moved = np.flatnonzero(records.size)
    with_address = records.address[moved] != ABSENT
    known, bare = moved[with_address], moved[~with_address]
    order = known[np.lexsort((known, records.address[known], records.device[known]))]
    allocates = records.size[order] > 0
    same_as_next = (np.diff(records.address[order]) == 0) & (np.diff(records.device[order]) == 0)
    followed = np.append(same_as_next, False)[: len(order)]
    then = np.append(order[1:], 0)[: len(order)]
    then_frees = followed & np.append(~allocates[1:], False)[: len(order)]
    paired = allocates & then_frees
    explained = np.append(False, paired[:-1])[: len(order)]  # a release whose allocation is right before it
    bare = bare[records.size[bare] > 0]
    end = len(records)
    replaced = allocates & followed & ~then_frees
    none = np.full(len(order), NO_CODE)
    parts = [
        np.stack([order, then, then, np.full(len(order), RELEASED)])[:, paired],
        np.stack([order, none, np.full(len(order), end), np.full(len(order), UNRELEASED)])[
            :, allocates & ~followed
        ],
        np.stack([order, none, then, np.full(len(order), REPLACED)])[:, replaced],
        np.stack([none, order, order, np.full(len(order), OLDER)])[:, ~allocates & ~explained],
        np.stack([bare, np.full(len(bare), NO_CODE), np.full(len(bare), end), np.full(len(bare), UNKNOWN)]),
    ]
    allocation, release, gone, state = np.concatenate(parts, axis=1)
    first = np.where(allocation >= 0, allocation, release)
    arranged = np.argsort(first, kind="stable")
    return Blocks(
        allocation[arranged].astype(np.int32),
        release[arranged].astype(np.int32),
        gone[arranged],
        np.abs(records.size[first[arranged]]),
        state[arranged].astype(np.int8),
    )


@derived
def has_addresses(trace: Trace) -> bool:
    """True if allocations can be matched with releases."""
    return bool((memory_records(trace).address != ABSENT).any())
