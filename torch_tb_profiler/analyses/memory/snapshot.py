"""A CUDA memory snapshot: what the allocator of each device holds, and its recorded history."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.memory_curve import RecordWindow, find_records, sample_levels
from torch_tb_profiler.analyses.shared.payload_values import float64_bytes
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.model.devices import device_name
from torch_tb_profiler.model.memory.exports import (
    ALLOC,
    AWAITING_FREE,
    FREE,
    FREE_REQUESTED,
    IN_USE,
    OUT_OF_MEMORY,
    SEGMENT_ALLOC,
    SEGMENT_FREE,
    RecordedSnapshot,
)
from torch_tb_profiler.model.trace import ABSENT, Int64


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
    for device in np.union1d(segments.device, history.device).tolist():
        segment_mask, block_mask = segments.device == device, owner == device
        sizes = {
            state: blocks.size[block_mask & (blocks.state == state)] for state in (IN_USE, AWAITING_FREE, FREE)
        }
        requested = blocks.requested[block_mask & (blocks.state == IN_USE)]
        recorded = history.action[history.device == device]
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
    """Return the allocator of a device (None: the one that reserves most). NotFoundError lists the devices."""
    devices = device_allocators(snapshot)
    for each in devices:
        if each.device == device:
            return each
    if device is None and devices:
        return max(devices, key=lambda each: each.reserved)
    listed = ", ".join(device_name("CUDA", each.device) for each in devices) or "none"
    wanted = "GPU" if device is None else device_name("CUDA", device)
    raise NotFoundError(f"the snapshot has no {wanted}", hint=f"devices: {listed}")


def has_requested_sizes(snapshot: RecordedSnapshot) -> bool:
    """Return True if the file records the requested size of each block."""
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
    """Memory from one `cudaMalloc`: its bytes, how many are allocated, its blocks, and its unsigned address."""

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
            address=int(segments.address[row]) % 2**64,
            stream=int(segments.stream[row]),
            kind=segments.kind[row],
            size=int(segments.size[row]),
            allocated=int(allocated[row]),
            blocks=int(counts[row]),
        )
        for row in order.tolist()
    ]


class AllocatorHistory(msgspec.Struct, frozen=True):
    """Bytes of a device after each entry of its history.

    entries  positions in the history of the snapshot
    timed    all entries have a time
    """

    entries: Int64
    allocated: Int64
    reserved: Int64
    timed: bool

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def peak(self) -> int | None:
        """The first entry after which the most bytes are allocated, None without a history."""
        return int(self.allocated.argmax()) if len(self) else None

    @property
    def peak_allocated(self) -> int:
        """Most bytes allocated after an entry, 0 without a history."""
        return int(self.allocated.max(initial=0))


def allocator_history(snapshot: RecordedSnapshot, allocator: DeviceAllocator) -> AllocatorHistory:
    """Compute the totals backwards from the state of the snapshot, because the oldest entries may be lost."""
    recorded = snapshot.history
    entries = np.flatnonzero(recorded.device == allocator.device)
    action, size = recorded.action[entries], recorded.size[entries]
    allocated = np.select([action == ALLOC, action == FREE_REQUESTED], [size, -size])
    reserved = np.select([action == SEGMENT_ALLOC, action == SEGMENT_FREE], [size, -size])
    return AllocatorHistory(
        entries=entries,
        allocated=_sum_up_to(allocated, allocator.allocated),
        reserved=_sum_up_to(reserved, allocator.reserved),
        timed=len(entries) > 0 and not (recorded.time[entries] == ABSENT).any(),
    )


def _sum_up_to(changes: Int64, last: int) -> Int64:
    values = np.cumsum(changes)
    return values + (last - values[-1]) if len(values) else values


class SampledHistory(msgspec.Struct, frozen=True):
    """A history sampled at p points; packed columns of float64[p].

    entry  number of the entry with which each sample begins
    time   of these entries, µs since the epoch; empty where the file has no times
    """

    entry: bytes
    time: bytes
    allocated_min: bytes
    allocated_max: bytes
    allocated_last: bytes
    reserved_last: bytes


def sample_history(snapshot: RecordedSnapshot, history: AllocatorHistory, points: int) -> SampledHistory:
    """Sample a history at no more than `points` + 1 points."""
    numbers = np.arange(len(history), dtype=np.int64)
    window = find_records(numbers, None, None) if len(history) else RecordWindow(0, 0, 0, 0)
    allocated = sample_levels(numbers, history.allocated, window, points)
    times = snapshot.history.time[history.entries][allocated.time]
    return SampledHistory(
        entry=float64_bytes(allocated.time),
        time=float64_bytes(times) if history.timed else b"",
        allocated_min=float64_bytes(allocated.least),
        allocated_max=float64_bytes(allocated.most),
        allocated_last=float64_bytes(allocated.last),
        reserved_last=float64_bytes(sample_levels(numbers, history.reserved, window, points).last),
    )


class SnapshotFailure(msgspec.Struct, frozen=True):
    """A failed allocation: bytes requested, bytes free on the device (None: not recorded), and its stack."""

    entry: int
    size: int
    device_free: int | None
    stack: int


def last_failures(snapshot: RecordedSnapshot, history: AllocatorHistory, limit: int) -> list[SnapshotFailure]:
    """Return the last `limit` allocations that failed, in order of time."""
    recorded = snapshot.history
    entries = np.flatnonzero(recorded.action[history.entries] == OUT_OF_MEMORY)[-limit:]
    failures = []
    for entry in entries.tolist():
        row = int(history.entries[entry])
        left = int(recorded.device_free[row])
        failures.append(
            SnapshotFailure(
                entry, int(recorded.size[row]), None if left == ABSENT else left, int(recorded.stack[row])
            )
        )
    return failures
