"""Blocks of memory: each allocation with its release.

Records of one address of a device, in order of time:

    alloc ---- free            a block
    alloc ---- alloc ...       the first is replaced: its release was not recorded, but it has ended
    free                       an older block: allocated before the trace, or not recorded
    alloc                      unreleased when the trace ends
"""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.memory.events import MemoryRecords, memory_records
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Int32, Int64, Trace

RELEASED, UNRELEASED, REPLACED, OLDER, UNKNOWN = range(5)
BlockState = Literal["released", "unreleased", "replaced", "older", "unknown"]
BLOCK_STATES: tuple[BlockState, ...] = ("released", "unreleased", "replaced", "older", "unknown")
"""Names of the states, by number."""


class MemoryBlocks(msgspec.Struct, frozen=True):
    """Blocks in order of the first record of each; columns of length b. Positions are those in `memory_records`.

    allocation  int32  position of the allocation, NO_CODE of an older block
    release     int32  position of the release, NO_CODE if there is none
    end         int64  position from which on it is no longer live: of its release, or of the allocation that
                       replaced it; the number of records if it outlives the trace
    size        int64  bytes, positive
    state       int8   RELEASED, UNRELEASED, REPLACED, OLDER; UNKNOWN of an allocation without an address, whose
                       release can't be found
    """

    allocation: Int32
    release: Int32
    end: Int64
    size: Int64
    state: np.ndarray[tuple[int], np.dtype[np.int8]]

    def __len__(self) -> int:
        return len(self.size)

    def live_after(self, position: int) -> Bool:
        """Return bool[b]: blocks with a recorded allocation that are live after the record at `position`."""
        is_allocated = (self.allocation >= 0) & (self.state != UNKNOWN)
        live: Bool = is_allocated & (self.allocation <= position) & (self.end > position)
        return live


@derived
def memory_blocks(trace: Trace) -> MemoryBlocks:
    """Return all blocks of all devices."""
    records = memory_records(trace)
    allocates, count = records.size > 0, len(records)
    has_address = records.address != ABSENT
    order = _order_by_address(records, np.flatnonzero(has_address & (records.size != 0)))
    begins = allocates[order]
    same_address = (np.diff(records.address[order]) == 0) & (np.diff(records.device[order]) == 0)
    released, replaced = same_address & begins[:-1] & ~begins[1:], same_address & begins[:-1] & begins[1:]
    # By position of the record with which a block begins; -1: none begins there.
    state = np.full(count, -1, np.int8)
    release = np.full(count, NO_CODE, np.int32)
    end = np.full(count, count, np.int64)
    state[order] = np.where(begins, UNRELEASED, OLDER)
    state[order[:-1][released]], state[order[1:][released]] = RELEASED, -1
    state[order[:-1][replaced]] = REPLACED
    state[allocates & ~has_address] = UNKNOWN
    release[order[:-1][released]] = order[1:][released]
    older = np.flatnonzero(state == OLDER)
    release[older] = end[older] = older
    has_ended = released | replaced
    end[order[:-1][has_ended]] = order[1:][has_ended]
    first = np.flatnonzero(state >= 0).astype(np.int32)
    return MemoryBlocks(
        allocation=np.where(state[first] == OLDER, NO_CODE, first).astype(np.int32),
        release=release[first],
        end=end[first],
        size=np.abs(records.size[first]),
        state=state[first],
    )


def _order_by_address(records: MemoryRecords, positions: Int64) -> Int64:
    """Sort positions by address, device, time. Two plain sorts: a stable one takes several times as long."""
    order = positions[np.argsort(records.address[positions])]
    rank = np.cumsum(np.diff(records.address[order], prepend=0) != 0)
    key = (rank * len(records.devices) + records.device[order]) * len(records) + order
    key.sort()
    return key % max(len(records), 1)


@derived
def has_addresses(trace: Trace) -> bool:
    """Return whether allocations can be matched with releases."""
    return bool((memory_records(trace).address != ABSENT).any())
