"""A CUDA memory snapshot: what the allocator of each device holds."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.model.devices import device_name
from torch_tb_profiler.model.snapshots import (
    AWAITING_FREE,
    FREE,
    IN_USE,
    OUT_OF_MEMORY,
    RecordedSnapshot,
)
from torch_tb_profiler.model.trace import ABSENT


class DeviceAllocator(msgspec.Struct, frozen=True):
    """The caching allocator of one device, in bytes; `requested` by the blocks in use, None where not recorded."""

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


def device_allocators(snapshot: RecordedSnapshot) -> tuple[DeviceAllocator, ...]:
    """Return the allocator of each device that has segments or a history."""
    segments, blocks, history = snapshot.segments, snapshot.blocks, snapshot.history
    owner = segments.device[blocks.segment]
    found = []
    for device in snapshot.device_numbers():
        segment_mask, block_mask = segments.device == device, owner == device
        sizes = {
            state: blocks.size[block_mask & (blocks.state == state)] for state in (IN_USE, AWAITING_FREE, FREE)
        }
        requested = blocks.requested[block_mask & (blocks.state == IN_USE)]
        recorded = history.action[snapshot.rows(device)]
        found.append(
            DeviceAllocator(
                device=device,
                segments=int(segment_mask.sum()),
                blocks=int(block_mask.sum()),
                reserved=int(segments.size[segment_mask].sum()),
                allocated=int(sizes[IN_USE].sum()),
                awaiting=int(sizes[AWAITING_FREE].sum()),
                free=int(sizes[FREE].sum()),
                largest_free=int(sizes[FREE].max(initial=0)),
                requested=None if (requested == ABSENT).any() else int(requested.sum()),
                entries=len(recorded),
                out_of_memory=int((recorded == OUT_OF_MEMORY).sum()),
            )
        )
    return tuple(found)


def find_allocator(snapshot: RecordedSnapshot, device: int | None) -> DeviceAllocator:
    """Return the allocator of a device. NotFoundError lists the devices.

    None is the one that reserves most, of those that ran out of memory if any did.
    """
    devices = device_allocators(snapshot)
    for each in devices:
        if each.device == device:
            return each
    if device is None and devices:
        return max(devices, key=lambda each: (each.out_of_memory > 0, each.reserved))
    listed = ", ".join(device_name("CUDA", each.device) for each in devices) or "none"
    wanted = "GPU" if device is None else device_name("CUDA", device)
    raise NotFoundError(f"the snapshot has no {wanted}", hint=f"devices: {listed}")


def has_requested_sizes(snapshot: RecordedSnapshot) -> bool:
    """Return whether the file records the requested size of each block."""
    return not (snapshot.blocks.requested == ABSENT).any()


class StackUsage(msgspec.Struct, frozen=True):
    """Blocks in use that were allocated from one stack (its code in the snapshot), and their bytes."""

    code: int
    blocks: int
    size: int


def usage_by_stack(snapshot: RecordedSnapshot, device: int) -> list[StackUsage]:
    """Return the memory in use on a device by stack, most bytes first."""
    blocks = snapshot.blocks
    used = (snapshot.segments.device[blocks.segment] == device) & (blocks.state == IN_USE)
    stacks, which = np.unique(blocks.stack[used], return_inverse=True)
    size = np.zeros(len(stacks), np.int64)
    np.add.at(size, which.reshape(-1), blocks.size[used])
    counts = np.bincount(which.reshape(-1), minlength=len(stacks))
    order = np.argsort(-size, kind="stable")
    columns = (stacks[order], counts[order], size[order])
    return [StackUsage(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


class AllocatorSegment(msgspec.Struct, frozen=True):
    """Memory from one `cudaMalloc`: its bytes, how many are allocated, its blocks, and its unsigned address.

    row  in the segments of the snapshot
    """

    row: int
    address: int
    stream: int
    kind: str
    size: int
    allocated: int
    blocks: int


def largest_segments(snapshot: RecordedSnapshot, device: int, limit: int) -> list[AllocatorSegment]:
    """Return at most `limit` segments of a device, largest first."""
    segments, blocks = snapshot.segments, snapshot.blocks
    allocated = np.zeros(len(segments.size), np.int64)
    in_use = blocks.state == IN_USE
    np.add.at(allocated, blocks.segment[in_use], blocks.size[in_use])
    counts = np.bincount(blocks.segment, minlength=len(segments.size))
    on_device = np.flatnonzero(segments.device == device)
    order = on_device[np.argsort(-segments.size[on_device], kind="stable")][:limit]
    return [
        AllocatorSegment(
            row=row,
            address=int(segments.address[row]) % 2**64,
            stream=int(segments.stream[row]),
            kind=snapshot.texts[int(segments.kind[row])],
            size=int(segments.size[row]),
            allocated=int(allocated[row]),
            blocks=int(counts[row]),
        )
        for row in order.tolist()
    ]
