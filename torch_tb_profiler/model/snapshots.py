"""CUDA memory snapshots as columns: segments, the blocks in them, the recorded history, and the stacks of both.

segment  |-- block: in use --|-- block: free --|-- awaiting free --|     memory from one cudaMalloc
history  segment_alloc  alloc  alloc  free_requested  free_completed ...

A block has two sizes: what the caller requested, and what the allocator rounded that up to. The history records
requested sizes only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from torch_tb_profiler.base.memo import MemoizedStruct

Int8 = npt.NDArray[np.int8]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]

ABSENT = np.iinfo(np.int64).min
"""An int64 cell without a value, the same number as in a trace, which imports this module."""

IN_USE, AWAITING_FREE, FREE = range(3)
"""States of a block: used by a tensor; freed, but another stream still uses it; cached for reuse."""

ALLOC, FREE_REQUESTED, SEGMENT_ALLOC, SEGMENT_FREE, OUT_OF_MEMORY, OTHER, FREE_COMPLETED = range(7)
"""Actions of the history."""

NO_FREE, FREES_OLDER = -1, -2
"""In `SnapshotHistory.freed`."""

MAX_FRAMES = 512
"""Frames that are kept of a stack, innermost first."""

MAX_METADATA_TEXTS = 1 << 16
"""Distinct texts of `user_metadata` that are kept; later ones read as NOT_KEPT."""

NOT_KEPT = "(text not kept)"


class SnapshotSegments(msgspec.Struct, frozen=True):
    """Segments; columns of length s. Sizes in bytes; `kind` is a code into the texts ("small", "large").

    pool        code into the pools
    expandable  1 if the segment can grow
    """

    device: Int32
    address: Int64
    stream: Int64
    size: Int64
    kind: Int32
    pool: Int32
    expandable: Int8


class SnapshotBlocks(msgspec.Struct, frozen=True):
    """Blocks; columns of length b, those of a segment in order of address.

    segment    index into the segments
    size       bytes of the block, rounded by the allocator
    requested  bytes that the caller requested, ABSENT in old files
    state      IN_USE, AWAITING_FREE or FREE
    stack      code into the stacks
    """

    segment: Int32
    address: Int64
    size: Int64
    requested: Int64
    state: Int8
    stack: Int32


class SnapshotHistory(msgspec.Struct, frozen=True):
    """Actions of the allocator; columns of length h, per device in order of time.

    address  of the block or segment; of OUT_OF_MEMORY the bytes that the device had left. ABSENT if not recorded
    size     bytes that were requested
    time     microseconds since the epoch, ABSENT where the file has none
    label    code into the labels
    freed    the row whose allocation an entry frees; NO_FREE if none, FREES_OLDER: one that is older than the
             history
    """

    action: Int8
    address: Int64
    size: Int64
    time: Int64
    stack: Int32
    label: Int32
    freed: Int32


class SnapshotDevices(msgspec.Struct, frozen=True):
    """Which rows of the history are whose: device `device[i]` has rows begin[i] to end[i]."""

    device: Int32
    begin: Int64
    end: Int64


class SnapshotLabels(msgspec.Struct, frozen=True):
    """What many entries share; `context` (`torch.compile`) and `metadata` (the user's) are codes of texts."""

    stream: Int64
    pool: Int32
    context: Int32
    metadata: Int32


class SnapshotPools(msgspec.Struct, frozen=True):
    """Memory pools, which PyTorch names with two numbers: (0, 0) is the default, others belong to CUDA graphs."""

    first: Int64
    second: Int64


class SnapshotFrames(msgspec.Struct, frozen=True):
    """Frames: `file` and `name` are codes of texts, `line` is 0 if unknown."""

    file: Int32
    name: Int32
    line: Int32


class SnapshotNotes(msgspec.Struct, frozen=True):
    """Beginnings and ends of the profiler's annotations; `name` and `stage` are codes of texts, time as above."""

    time: Int64
    name: Int32
    stage: Int32
    device: Int32


_TABLES: dict[str, type[msgspec.Struct]] = {
    "segments": SnapshotSegments,
    "blocks": SnapshotBlocks,
    "history": SnapshotHistory,
    "devices": SnapshotDevices,
    "labels": SnapshotLabels,
    "pools": SnapshotPools,
    "frames": SnapshotFrames,
    "notes": SnapshotNotes,
}


class SnapshotFacts(msgspec.Struct, frozen=True):
    """What is known about the file itself.

    settings   of the allocator (`allocator_settings`)
    skipped    entries in the file that are no dicts or lack their size
    bytes      that were read, unpacked
    incomplete why the rest couldn't be read, None if all was read
    preview    the history is still being read; only segments and blocks are here
    """

    settings: Mapping[str, bool | int | float | str | None] = {}
    skipped: int = 0
    bytes: int = 0
    incomplete: str | None = None
    preview: bool = False


class RecordedSnapshot(MemoizedStruct, frozen=True):
    """A CUDA memory snapshot.

    stack_ends   int64[k]: the frames of stack i end at stack_ends[i] of `stack_frames`; stack 0 is empty
    stack_frames int32: codes of frames, innermost first
    texts        by code; text 0 is empty
    """

    segments: SnapshotSegments
    blocks: SnapshotBlocks
    history: SnapshotHistory
    devices: SnapshotDevices
    labels: SnapshotLabels
    pools: SnapshotPools
    frames: SnapshotFrames
    notes: SnapshotNotes
    stack_ends: Int64
    stack_frames: Int32
    texts: Sequence[str]
    facts: SnapshotFacts

    @property
    def stack_count(self) -> int:
        return len(self.stack_ends)

    def stack(self, code: int) -> list[str]:
        """Return the frames of a stack, innermost first, as `path(line): function`."""
        return [self.frame(frame) for frame in self.stack_codes(code).tolist()]

    def stack_codes(self, code: int) -> Int32:
        """Return the codes of a stack's frames, innermost first."""
        begin = int(self.stack_ends[code - 1]) if code else 0
        return self.stack_frames[begin : int(self.stack_ends[code])]

    def frame(self, code: int) -> str:
        """Return a frame as `path(line): function`, or what is known of it."""
        file, name = self.texts[int(self.frames.file[code])], self.texts[int(self.frames.name[code])]
        line = int(self.frames.line[code])
        return f"{file}({line}): {name}" if line > 0 else name or file or "??"

    def rows(self, device: int) -> slice:
        """Return the rows of a device's history."""
        found = np.flatnonzero(self.devices.device == device)
        if not len(found):
            return slice(0, 0)
        return slice(int(self.devices.begin[found[0]]), int(self.devices.end[found[0]]))

    def device_numbers(self) -> list[int]:
        """Return the devices that have segments or a history, ascending."""
        recorded = self.devices.device[self.devices.end > self.devices.begin]
        numbers: list[int] = np.union1d(self.segments.device, recorded).tolist()
        return numbers

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """Return all columns by name, as `from_columns` takes them."""
        columns = {
            f"{table}.{name}": getattr(getattr(self, table), name)
            for table, kind in _TABLES.items()
            for name in kind.__struct_fields__
        }
        return {**columns, "stack_ends": self.stack_ends, "stack_frames": self.stack_frames}

    @classmethod
    def from_columns(
        cls, columns: Mapping[str, npt.NDArray[Any]], texts: Sequence[str], facts: SnapshotFacts
    ) -> RecordedSnapshot:
        """Build a snapshot from its columns by name."""
        tables: dict[str, Any] = {
            table: kind(*(columns[f"{table}.{name}"] for name in kind.__struct_fields__))
            for table, kind in _TABLES.items()
        }
        ends, frames = columns["stack_ends"], columns["stack_frames"]
        return cls(**tables, stack_ends=ends, stack_frames=frames, texts=texts, facts=facts)


def freed_allocations(action: Int8, address: Int64, begin: npt.ArrayLike, end: npt.ArrayLike) -> Int32:
    """Return, for each entry of all histories, which allocation it frees, as `SnapshotHistory.freed` has it.

    Of `free_requested` and `free_completed` the first one after the allocation frees it: some files have only one
    of them. A second free of the same allocation frees nothing.

    action, address  int8[n], int64[n] of all histories; begin, end: the rows of each
    """
    freed = np.full(len(action), NO_FREE, np.int32)
    done = 0
    for first, last in zip(np.asarray(begin).tolist(), np.asarray(end).tolist(), strict=True):
        if first >= done:  # a history may repeat entries of an earlier one
            freed[first:last] = _match_freed_on_device(action[first:last], address[first:last], first)
            done = last
    return freed


def _match_freed_on_device(action: Int8, address: Int64, offset: int) -> Int32:
    freed = np.full(len(action), NO_FREE, np.int32)
    relevant = (action == ALLOC) | (action == FREE_REQUESTED) | (action == FREE_COMPLETED)
    rows = np.flatnonzero(relevant & (address != ABSENT))
    order = rows[np.argsort(address[rows], kind="stable")]
    if len(order):
        is_free = action[order] != ALLOC
        known = np.concatenate([[False], address[order[1:]] == address[order[:-1]]])
        after_alloc = np.concatenate([[False], ~is_free[:-1]]) & known
        freed[order[is_free & ~known]] = FREES_OLDER
        ends = np.flatnonzero(is_free & after_alloc)
        freed[order[ends]] = order[ends - 1] + offset
    freed[(action == FREE_REQUESTED) & (address == ABSENT)] = FREES_OLDER
    return freed
