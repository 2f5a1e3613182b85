"""A CUDA memory snapshot: what the allocator of each device holds, in which segments and for which stacks."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.model.devices import device_name
from torch_tb_profiler.model.memory.exports import AWAITING_FREE, FREE, IN_USE, OUT_OF_MEMORY, RecordedSnapshot
from torch_tb_profiler.model.trace import ABSENT


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


def allocators(snapshot: RecordedSnapshot) -> tuple[Allocator, ...]:
    """Of each device with segments or a history."""
    segments, blocks, history = snapshot.segments, snapshot.blocks, snapshot.history
    owner = segments.device[blocks.segment]
    made = []
    for device in np.union1d(segments.device, history.device).tolist():
        of_segments, of_blocks = segments.device == device, owner == device
        sizes = {
            state: blocks.size[of_blocks & (blocks.state == state)] for state in (IN_USE, AWAITING_FREE, FREE)
        }
        requested = blocks.requested[of_blocks & (blocks.state == IN_USE)]
        recorded = history.action[history.device == device]
        made.append(
            Allocator(
                device=device,
                segments=int(of_segments.sum()),
                blocks=int(of_blocks.sum()),
                reserved=int(segments.size[of_segments].sum()),
                allocated=int(sizes[IN_USE].sum()),
                awaiting=int(sizes[AWAITING_FREE].sum()),
                free=int(sizes[FREE].sum()),
                largest_free=int(sizes[FREE].max(initial=0)),
                requested=None if (requested == ABSENT).any() else int(requested.sum()),
                entries=len(recorded),
                out_of_memory=int((recorded == OUT_OF_MEMORY).sum()),
            )
        )
    return tuple(made)


def allocator(snapshot: RecordedSnapshot, device: int | None) -> Allocator:
    """Of one device, by default of the one that holds most. NotFoundError lists the devices."""
    devices = allocators(snapshot)
    for each in devices:
        if each.device == device:
            return each
    if device is None and devices:
        return max(devices, key=lambda each: each.reserved)
    listed = ", ".join(device_name("CUDA", each.device) for each in devices) or "none"
    wanted = "GPU" if device is None else device_name("CUDA", device)
    raise NotFoundError(f"the snapshot has no {wanted}", hint=f"devices: {listed}")


def records_requested(snapshot: RecordedSnapshot) -> bool:
    """True if the file records the requested size of each block."""
    return not (snapshot.blocks.requested == ABSENT).any()


class LiveStack(msgspec.Struct, frozen=True):
    """Blocks in use that were allocated from one stack (code of the snapshot's stacks), and their bytes."""

    code: int
    blocks: int
    size: int


def live_by_stack(snapshot: RecordedSnapshot, device: int) -> list[LiveStack]:
    """What is in use on a device, most bytes first."""
    blocks = snapshot.blocks
    used = (snapshot.segments.device[blocks.segment] == device) & (blocks.state == IN_USE)
    stacks, which = np.unique(blocks.stack[used], return_inverse=True)
    size = np.zeros(len(stacks), np.int64)
    np.add.at(size, which.reshape(-1), blocks.size[used])
    counts = np.bincount(which.reshape(-1), minlength=len(stacks))
    order = np.argsort(-size, kind="stable")
    columns = (stacks[order], counts[order], size[order])
    return [LiveStack(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


class Segment(msgspec.Struct, frozen=True):
    """Memory from one `cudaMalloc`: bytes, `allocated` of them in use; how many blocks; its address, unsigned."""

    address: int
    stream: int
    kind: str
    size: int
    allocated: int
    blocks: int


def largest_segments(snapshot: RecordedSnapshot, device: int, limit: int) -> list[Segment]:
    """At most `limit` segments of a device, largest first."""
    segments, blocks = snapshot.segments, snapshot.blocks
    allocated = np.zeros(len(segments.size), np.int64)
    in_use = blocks.state == IN_USE
    np.add.at(allocated, blocks.segment[in_use], blocks.size[in_use])
    counts = np.bincount(blocks.segment, minlength=len(segments.size))
    of_device = np.flatnonzero(segments.device == device)
    order = of_device[np.argsort(-segments.size[of_device], kind="stable")][:limit]
    return [
        Segment(
            address=int(segments.address[row]) % 2**64,
            stream=int(segments.stream[row]),
            kind=segments.kind[row],
            size=int(segments.size[row]),
            allocated=int(allocated[row]),
            blocks=int(counts[row]),
        )
        for row in order.tolist()
    ]
