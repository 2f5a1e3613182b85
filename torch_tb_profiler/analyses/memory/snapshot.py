"""A CUDA memory snapshot: what each device's allocator holds, for which stacks, and how it came to that."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.model.memory.snapshot import (
    ALLOC,
    AWAITING,
    FREE,
    FREE_REQUESTED,
    IN_USE,
    OUT_OF_MEMORY,
    SEGMENT_ALLOC,
    SEGMENT_FREE,
    Snapshot,
)
from torch_tb_profiler.model.trace import ABSENT, Int64


class Allocator(msgspec.Struct, frozen=True):
    """One device. Bytes; `requested` of the blocks in use, None in files that do not say."""

    device: int
    segments: int
    blocks: int
    reserved: int
    allocated: int
    awaiting: int
    free: int
    largest_free: int
    requested: int | None
    entries: int
    out_of_memory: int


def allocators(snapshot: Snapshot) -> tuple[Allocator, ...]:
    """Of every device with segments or a history."""
    segments, blocks, history = snapshot.segments, snapshot.blocks, snapshot.history
    owner = segments.device[blocks.segment]
    made = []
    for device in np.union1d(segments.device, history.device).tolist():
        mine, own = owner == device, segments.device == device
        sizes = {state: blocks.size[mine & (blocks.state == state)] for state in (IN_USE, AWAITING, FREE)}
        asked = blocks.requested[mine & (blocks.state == IN_USE)]
        recorded = history.action[history.device == device]
        made.append(
            Allocator(
                device=device,
                segments=int(own.sum()),
                blocks=int(mine.sum()),
                reserved=int(segments.size[own].sum()),
                allocated=int(sizes[IN_USE].sum()),
                awaiting=int(sizes[AWAITING].sum()),
                free=int(sizes[FREE].sum()),
                largest_free=int(sizes[FREE].max(initial=0)),
                requested=None if (asked == ABSENT).any() else int(asked.sum()),
                entries=len(recorded),
                out_of_memory=int((recorded == OUT_OF_MEMORY).sum()),
            )
        )
    return tuple(made)


def allocator(snapshot: Snapshot, device: int | None) -> Allocator:
    """Of one device, by default of the one that holds most. NotFoundError lists the devices."""
    every = allocators(snapshot)
    for each in every:
        if each.device == device:
            return each
    if device is None and every:
        return max(every, key=lambda each: each.reserved)
    listed = ", ".join(str(each.device) for each in every) or "none"
    raise NotFoundError(f"the snapshot has no device {device}", hint=f"devices: {listed}")


class StackBlocks(msgspec.Struct, frozen=True):
    """Blocks in use by stack, most bytes first: codes of stacks, how many blocks, their bytes."""

    stack: Int64
    blocks: Int64
    size: Int64


def live_by_stack(snapshot: Snapshot, device: int) -> StackBlocks:
    """What is in use on a device."""
    blocks = snapshot.blocks
    mine = (snapshot.segments.device[blocks.segment] == device) & (blocks.state == IN_USE)
    stack, which = np.unique(blocks.stack[mine], return_inverse=True)
    size = np.zeros(len(stack), np.int64)
    np.add.at(size, which.reshape(-1), blocks.size[mine])
    order = np.argsort(-size, kind="stable")
    counts = np.bincount(which.reshape(-1), minlength=len(stack))
    return StackBlocks(stack[order].astype(np.int64), counts[order], size[order])


class Course(msgspec.Struct, frozen=True):
    """Bytes of a device after each entry of its history; `entries` are positions in the history."""

    entries: Int64
    allocated: Int64
    reserved: Int64


def course(snapshot: Snapshot, found: Allocator) -> Course:
    """Told backwards from the state of the snapshot, as the oldest entries may be lost."""
    history = snapshot.history
    at = np.flatnonzero(history.device == found.device)
    action, size = history.action[at], history.size[at]
    used = np.select([action == ALLOC, action == FREE_REQUESTED], [size, -size])
    held = np.select([action == SEGMENT_ALLOC, action == SEGMENT_FREE], [size, -size])
    return Course(at, _ending_in(used, found.allocated), _ending_in(held, found.reserved))


def _ending_in(changes: Int64, last: int) -> Int64:
    values = np.cumsum(changes)
    return values + (last - values[-1]) if len(values) else values
