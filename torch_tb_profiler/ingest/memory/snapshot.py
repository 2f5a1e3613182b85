"""Read CUDA memory snapshots (`torch.cuda.memory._dump_snapshot`), pickles of plain values, into columns."""

from __future__ import annotations

import gc
from typing import Any, BinaryIO

import numpy as np

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest.plain_pickle import read_plain_pickle
from torch_tb_profiler.model.memory.exports import (
    ALLOC,
    AWAITING_FREE,
    FREE,
    FREE_REQUESTED,
    IN_USE,
    OTHER,
    OUT_OF_MEMORY,
    SEGMENT_ALLOC,
    SEGMENT_FREE,
    RecordedSnapshot,
    SnapshotBlocks,
    SnapshotHistory,
    SnapshotSegments,
)
from torch_tb_profiler.model.trace import ABSENT

_ACTIONS = {
    "alloc": ALLOC,
    "free_requested": FREE_REQUESTED,
    "free": FREE_REQUESTED,
    "segment_alloc": SEGMENT_ALLOC,
    "segment_map": SEGMENT_ALLOC,
    "segment_free": SEGMENT_FREE,
    "segment_unmap": SEGMENT_FREE,
    "oom": OUT_OF_MEMORY,
}
_STATES = {"active_allocated": IN_USE, "active_awaiting_free": AWAITING_FREE, "active_pending_free": AWAITING_FREE}

_MAX_ENTRIES = 5_000_000
_MAX_FRAMES = 512


def read_snapshot(stream: BinaryIO) -> RecordedSnapshot:
    """Read a snapshot; raise TraceError if the file isn't a pickle of plain values or has no segments."""
    enabled = gc.isenabled()
    gc.disable()  # millions of containers, none of which is garbage
    try:
        value = read_plain_pickle(stream)
        return _SnapshotReader().read(value)
    finally:
        if enabled:
            gc.enable()


class _SnapshotReader:
    """Collects rows by kind and interned stacks; counts unreadable entries.

    Several references to one entry of the pickle count as several entries, so _MAX_ENTRIES bounds the memory.
    """

    def __init__(self) -> None:
        self.segments: list[tuple[int, int, int, int]] = []
        self.kinds: list[str] = []
        self.blocks: list[tuple[int, int, int, int, int]] = []
        self.history: list[tuple[int, int, int, int, int, int]] = []
        self.stacks: dict[tuple[str, ...], int] = {(): 0}
        # Keys are ids of objects; the pickle's value outlives the reader, so no id is reused.
        self.stack_codes: dict[int, int] = {}
        self.frame_texts: dict[int, str] = {}
        self.skipped = 0
        self.entries = 0

    def read(self, value: Any) -> RecordedSnapshot:
        segments = value.get("segments") if type(value) is dict else value
        if type(segments) is not list:
            raise TraceError(
                "the pickle is not a memory snapshot: it has no list of segments",
                hint="`torch.cuda.memory._dump_snapshot` writes one",
            )
        for segment in segments:
            self._add_segment(segment)
        traces = value.get("device_traces") if type(value) is dict else None
        for device, trace in enumerate(_list(traces)):
            for entry in _list(trace):
                self._add_entry(device, entry)
        device, address, stream, size = _columns(self.segments, "iqqq")
        return RecordedSnapshot(
            SnapshotSegments(device, address, stream, size, tuple(self.kinds)),
            SnapshotBlocks(*_columns(self.blocks, "iqqbi")),
            SnapshotHistory(*_columns(self.history, "ibqqqi")),
            tuple(self.stacks),
            self.skipped,
        )

    def _count_entry(self) -> None:
        self.entries += 1
        if self.entries > _MAX_ENTRIES:
            raise TraceError(
                f"the snapshot has more than {_MAX_ENTRIES:,} entries",
                hint="record less: `torch.cuda.memory._record_memory_history(max_entries=100_000)`",
            )

    def _add_segment(self, segment: Any) -> None:
        self._count_entry()
        size = _int(segment, "total_size")
        if size == ABSENT:
            self.skipped += 1
            return
        device = max(0, _int(segment, "device", 0))
        self.segments.append((device, _int(segment, "address", 0), _int(segment, "stream", 0), size))
        kind = segment.get("segment_type")
        self.kinds.append(kind if type(kind) is str else "")
        for block in _list(segment.get("blocks")):
            self._add_block(len(self.segments) - 1, block)

    def _add_block(self, segment: int, block: Any) -> None:
        self._count_entry()
        size = _int(block, "size")
        if size == ABSENT:
            self.skipped += 1
            return
        state = block.get("state")
        code = _STATES.get(state, FREE) if type(state) is str else FREE
        frames = block.get("frames")
        if frames is None:  # the oldest versions write them in the block's history
            history = _list(block.get("history"))
            frames = history[0].get("frames") if history and type(history[0]) is dict else None
        self.blocks.append((segment, size, _int(block, "requested_size"), code, self._stack_code(frames)))

    def _add_entry(self, device: int, entry: Any) -> None:
        self._count_entry()
        action = entry.get("action") if type(entry) is dict else None
        size = _int(entry, "size")
        if type(action) is not str or size == ABSENT:
            self.skipped += 1
            return
        code = _ACTIONS.get(action, OTHER)
        free, time = _int(entry, "device_free"), _int(entry, "time_us")
        self.history.append((device, code, size, free, time, self._stack_code(entry.get("frames"))))

    def _stack_code(self, frames: Any) -> int:
        code = self.stack_codes.get(id(frames))
        if code is None:
            texts = tuple([self._frame_text(frame) for frame in _list(frames)[:_MAX_FRAMES]])
            code = self.stack_codes[id(frames)] = self.stacks.setdefault(texts, len(self.stacks))
        return code

    def _frame_text(self, frame: Any) -> str:
        text = self.frame_texts.get(id(frame))
        if text is None:
            fields = frame if type(frame) is dict else {}
            file, line, name = (fields.get(key) for key in ("filename", "line", "name"))
            file, name = (part if type(part) is str else "" for part in (file, name))
            text = f"{file}({line}): {name}" if type(line) is int and line > 0 else name or file or "??"
            self.frame_texts[id(frame)] = text
        return text


def _list(value: Any) -> list[Any]:
    return value if type(value) is list else []


def _int(entry: Any, key: str, default: int = int(ABSENT)) -> int:
    """Return an integer of a dict, wrapped to 64 bits as C++ would (addresses are unsigned)."""
    value = entry.get(key) if type(entry) is dict else None
    return (value + 2**63) % 2**64 - 2**63 if type(value) is int else default


def _columns(rows: list[Any], types: str) -> list[Any]:
    if not rows:
        return [np.empty(0, kind) for kind in types]
    return [np.array(column, kind) for column, kind in zip(zip(*rows, strict=True), types, strict=True)]
