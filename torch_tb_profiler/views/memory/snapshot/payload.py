"""Parameters and payload of a memory snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from torch_tb_profiler.analyses.tracks.sources import SourceFrame
from torch_tb_profiler.view import FileParams, Float64s
from torch_tb_profiler.views._shared.text import Text
from torch_tb_profiler.views.memory.curve import Points


class SnapshotParams(FileParams, frozen=True):
    """A snapshot of the run and a device in it; `limit` of the rows.

    device        by default one that ran out of memory, else the one that reserves most
    device_bytes  memory of the device, which the file doesn't tell: with it, the share of other processes is known
    """

    device: int | None = None
    points: Points = 1000
    limit: Annotated[int, msgspec.Meta(ge=0)] = 200
    device_bytes: Annotated[int, msgspec.Meta(ge=0)] | None = None


class SnapshotDevice(msgspec.Struct, frozen=True):
    """The caching allocator of one device when the snapshot was taken.

    reserved_bytes       in segments; allocated_bytes: in use by tensors; awaiting_bytes: freed, another stream
                         still uses it; free_bytes: cached, for reuse; largest_free_bytes: the largest such block
    requested_bytes      what the tensors in use requested; allocated - requested is lost to rounding. Null in
                         old files
    entries              of the recorded history; oldest ones are lost once the history is full
    out_of_memory        errors in the history
    """

    id: int
    segments: int
    blocks: int
    reserved_bytes: int
    allocated_bytes: int
    awaiting_bytes: int
    free_bytes: int
    largest_free_bytes: int
    requested_bytes: int | None
    entries: int
    out_of_memory: int


class SnapshotStack(msgspec.Struct, frozen=True):
    """Blocks in use that were allocated from one stack, innermost frame first; no frame: not recorded."""

    frames: list[SourceFrame]
    blocks: int
    bytes: int


class SnapshotSegment(msgspec.Struct, frozen=True):
    """Memory from one `cudaMalloc`. `blocks` in use and free, `address` in hexadecimal."""

    address: str
    stream: int
    kind: str
    bytes: int
    allocated_bytes: int
    blocks: int


class OutOfMemory(msgspec.Struct, frozen=True):
    """A failed allocation: bytes requested, bytes free on the device, and its stack; `entry` of the history."""

    entry: int
    bytes: int
    device_free_bytes: int | None
    frames: list[SourceFrame]


class SnapshotSite(msgspec.Struct, frozen=True):
    """Requested bytes and number of the blocks that were allocated from one stack, innermost frame first.

    category  what most of these bytes are for
    """

    frames: list[SourceFrame]
    bytes: int
    blocks: int
    category: str


class SnapshotModule(msgspec.Struct, frozen=True):
    """Requested bytes and blocks of one module: the file of the innermost `forward` that isn't PyTorch's own."""

    name: str
    bytes: int
    blocks: int


class SnapshotPeak(msgspec.Struct, frozen=True):
    """The first moment when the allocations in the history use most, in requested bytes.

    bytes             of allocations in the history; `older_bytes` were allocated before it and are in use, too
    entry             of the history; `time_us` since the epoch, null in old files
    categories        by what the stacks say; they add up to `bytes`, unknown ones included
    sites             most bytes first, at most `limit`; `total_sites`: without the limit
    modules           most bytes first; they add up to `bytes`
    compile_contexts  by `torch.compile`'s contexts; "N/A" is PyTorch's word for none, "" for not recorded
    """

    bytes: int
    older_bytes: int
    entry: int
    time_us: int | None
    categories: Mapping[str, int]
    total_sites: int
    sites: list[SnapshotSite]
    modules: list[SnapshotModule]
    compile_contexts: Mapping[str, int]


class StepPeak(msgspec.Struct, frozen=True):
    """Most requested bytes in use inside of steps or outside of them, and when; `step` is "" outside."""

    bytes: int
    entry: int
    step: str


class SnapshotOom(msgspec.Struct, frozen=True):
    """Why an allocation failed, with the state of the allocator at that moment, in bytes; null is unknown.

    requested      by the allocation; `device_free`: free on the device
    reserved       in segments of this process; `in_use` of it by tensors, `unused` the rest
    largest_free   the largest unused piece that the request could have used; all of them: `usable`
    other_unused   unused pieces of other streams, private pools, and the other size class
    other_bytes    held by other processes and the CUDA context; needs the parameter `device_bytes`
    categories     of what is in use, most first; they add up to `in_use`
    cause          held, fragmentation, other pools, limit, or unknown
    verdict        the cause as a sentence; remedies: what follows from it, most effective first
    """

    entry: int
    requested: int
    device_free: int | None
    reserved: int | None
    in_use: int | None
    unused: int | None
    usable: int | None
    largest_free: int | None
    other_unused: int | None
    other_bytes: int | None
    categories: Mapping[str, int]
    cause: str
    verdict: Text
    remedies: list[Text]


class SnapshotLeakRow(msgspec.Struct, frozen=True):
    """Blocks of one stack, innermost frame first, that were allocated in `steps` steps and are all in use.

    since_entry  entry of the oldest of them
    """

    frames: list[SourceFrame]
    bytes: int
    blocks: int
    steps: int
    since_entry: int


class SnapshotGrowthPayload(msgspec.Struct, frozen=True):
    """What grew over the steps of the history, until the last failed allocation or until the end.

    summary            in sentences; steps: how many were looked at, until `entry`
    annotated          whether the file annotates them; else the optimizer's allocations tell, if they are regular;
                       else each is a forward and a backward pass, of which one step may have several
    leaks              sites that may leak, most bytes first, at most `limit`; `leaked_bytes`: of all of them
    live_bytes         per step by which memory in use rises although no site leaks, null if it doesn't
    rising             the stack that allocates more and more then, empty if unknown
    reserved_bytes     per step by which reserved memory rises although tensors use no more, null if it doesn't
    """

    summary: Text
    entry: int
    steps: int
    annotated: bool
    leaked_bytes: int
    leaks: list[SnapshotLeakRow]
    live_bytes: int | None
    rising: list[SourceFrame]
    reserved_bytes: int | None


class SnapshotRead(msgspec.Struct, frozen=True):
    """How much of the file was read: entries of all histories, unpacked bytes; false if something is missing."""

    entries: int
    bytes: int
    complete: bool


class MemorySnapshot(msgspec.Struct, frozen=True):
    """Why memory ran out, what grew and what is in use, from one device of a CUDA memory snapshot.

    headline          why it ran out of memory; without a failure what the device reserves, and how much is in use
    details           blocks, cache, failures
    peak              most memory in use in the history, null without one
    oom               the allocations that failed, the last one last, and why
    growth            what grew over the steps; null without a history or with fewer than four steps in it
    stacks, segments  largest first, at most `limit` of them; `total_stacks`, `total_segments`: without the limit
    history           step function over the recorded history, ending in the state of the snapshot; columns are
                      little-endian float64 of equal length (base64), sampled to the requested number of points:
                      `entry` is the number of the entry (or bucket's first), with minimum, maximum and
                      last value of its bucket
    history_time_us   of each point, microseconds since the epoch; empty where the file has no times
    categories        that occur in the history; `category_bytes` has a column for each: its bytes at
                      `peak_of_point`, the entry of the point after which most bytes are in use; they add up to
                      the bytes in use
    step_peak         the peak inside of steps, `outside_peak` outside of them; null where there is none
    unknown_ratio     share of the bytes at the peak that no rule gives a category, null without a peak
    peak_allocated_bytes  most that was in use: requested bytes, before the allocator's rounding, unless
                          `requested_bytes` of the device is null
    """

    headline: Text
    details: Text
    device: int
    devices: list[SnapshotDevice]
    total_stacks: int
    stacks: list[SnapshotStack]
    total_segments: int
    segments: list[SnapshotSegment]
    out_of_memory: list[OutOfMemory]
    entry: Float64s
    history_time_us: Float64s
    allocated_min: Float64s
    allocated_max: Float64s
    allocated_last: Float64s
    reserved_last: Float64s
    categories: list[str]
    category_bytes: list[Float64s]
    peak_of_point: Float64s
    step_peak: StepPeak | None
    outside_peak: StepPeak | None
    unknown_ratio: float | None
    peak_allocated_bytes: int
    peak_entry: int | None
    peak: SnapshotPeak | None
    oom: list[SnapshotOom]
    growth: SnapshotGrowthPayload | None
    read: SnapshotRead
    reasons: Mapping[str, Text]
