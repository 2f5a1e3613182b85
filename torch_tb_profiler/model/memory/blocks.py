"""Blocks of memory: each allocation with its release.

Within an address of a device, in order of time:

    alloc ---- free            a block
    alloc ---- alloc ...       the first is replaced: its release was not recorded, but it is gone
    free                       an older block: allocated before the trace, or unseen
    alloc                      unreleased when the trace ends
"""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.model.memory.events import MemoryRecords, memory_records
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Int32, Int64, Trace, derived

RELEASED, UNRELEASED, REPLACED, OLDER, UNKNOWN = range(5)
State = Literal["released", "unreleased", "replaced", "older", "unknown"]
STATES: tuple[State, ...] = ("released", "unreleased", "replaced", "older", "unknown")


class Blocks(msgspec.Struct, frozen=True):
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
    allocates, end = records.size > 0, len(records)
    known = records.address != ABSENT
    order = _by_address(records, np.flatnonzero(known & (records.size != 0)))
    begins = allocates[order]
    again = (np.diff(records.address[order]) == 0) & (np.diff(records.device[order]) == 0)
    released, replaced = again & begins[:-1] & ~begins[1:], again & begins[:-1] & begins[1:]
    # By position of the record with which a block begins; -1: none begins there.
    state = np.full(end, -1, np.int8)
    release = np.full(end, NO_CODE, np.int32)
    gone = np.full(end, end, np.int64)
    state[order] = np.where(begins, UNRELEASED, OLDER)
    state[order[:-1][released]], state[order[1:][released]] = RELEASED, -1
    state[order[:-1][replaced]] = REPLACED
    state[allocates & ~known] = UNKNOWN
    release[order[:-1][released]] = order[1:][released]
    older = np.flatnonzero(state == OLDER)
    release[older] = gone[older] = older
    followed = released | replaced
    gone[order[:-1][followed]] = order[1:][followed]
    first = np.flatnonzero(state >= 0).astype(np.int32)
    return Blocks(
        allocation=np.where(state[first] == OLDER, NO_CODE, first).astype(np.int32),
        release=release[first],
        gone=gone[first],
        size=np.abs(records.size[first]),
        state=state[first],
    )


def _by_address(records: MemoryRecords, positions: Int64) -> Int64:
    """Positions in order of address, device, time. Two plain sorts: a stable one takes several times as long."""
    order = positions[np.argsort(records.address[positions])]
    rank = np.cumsum(np.diff(records.address[order], prepend=0) != 0)
    key = (rank * len(records.devices) + records.device[order]) * len(records) + order
    key.sort()
    return key % max(len(records), 1)


@derived
def has_addresses(trace: Trace) -> bool:
    """True if allocations can be matched with releases."""
    return bool((memory_records(trace).address != ABSENT).any())
