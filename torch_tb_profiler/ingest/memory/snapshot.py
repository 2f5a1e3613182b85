"""Read CUDA memory snapshots (`torch.cuda.memory._dump_snapshot`, `_memory_snapshot_pickled`) into columns.

The native reader (`native/`) streams a file of any size. Where it is not built, or meets a pickle that only other
programs write, `plain_pickle.py` reads the file as Python values, within its limits.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO, cast

import numpy as np

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest.memory.native.reader import (
    UnusualPickleError,
    describe_state,
    load_library,
    read_native,
)
from torch_tb_profiler.ingest.plain_pickle import PickleLimitError, PlainPickle, read_plain_prefix
from torch_tb_profiler.ingest.runtime import Report, ignore_progress, preview_receiver, without_gc
from torch_tb_profiler.ingest.source import UnpackedStream
from torch_tb_profiler.model.health import HealthLog
from torch_tb_profiler.model.snapshots import (
    ALLOC,
    AWAITING_FREE,
    FREE,
    FREE_COMPLETED,
    FREE_REQUESTED,
    IN_USE,
    MAX_FRAMES,
    OTHER,
    OUT_OF_MEMORY,
    SEGMENT_ALLOC,
    SEGMENT_FREE,
    RecordedSnapshot,
    SnapshotFacts,
    freed_allocations,
)
from torch_tb_profiler.model.trace import ABSENT, Events, Trace

PRODUCER = "PyTorch's memory snapshot"

_ACTIONS = {
    "alloc": ALLOC,
    "free_requested": FREE_REQUESTED,
    "free": FREE_REQUESTED,
    "free_completed": FREE_COMPLETED,
    "segment_alloc": SEGMENT_ALLOC,
    "segment_map": SEGMENT_ALLOC,
    "segment_free": SEGMENT_FREE,
    "segment_unmap": SEGMENT_FREE,
    "oom": OUT_OF_MEMORY,
}
_STATES = {"active_allocated": IN_USE, "active_awaiting_free": AWAITING_FREE, "active_pending_free": AWAITING_FREE}

_MAX_ENTRIES = 5_000_000
_HINT = "is this a file that `torch.cuda.memory._dump_snapshot` wrote?"


def read_snapshot_trace(stream: BinaryIO, *, size: int, report: Report) -> Trace:
    """Return a trace without events that holds the snapshot in a file; raise TraceError if it holds none."""
    health = HealthLog()
    receive = preview_receiver()
    snapshot = read_snapshot(
        stream,
        size=size,
        report=report,
        health=health,
        preview=None if receive is None else lambda part: receive(as_trace(part)),
    )
    if snapshot.facts.incomplete is not None:
        health.add(
            "truncated",
            "error",
            f"only part of the snapshot could be read: {snapshot.facts.incomplete}",
            offset=snapshot.facts.bytes,
        )
    if snapshot.facts.skipped:
        health.add(
            "snapshot_entries",
            "warning",
            "entries of the snapshot that can't be read were left out",
            count=snapshot.facts.skipped,
        )
    return as_trace(snapshot, health)


def as_trace(snapshot: RecordedSnapshot, health: HealthLog | None = None) -> Trace:
    """Return a trace without events that holds a snapshot."""
    health = health or HealthLog()
    none, numbers = np.empty(0, np.int32), np.empty(0, np.int64)
    events = Events(np.empty(0, np.uint8), none, none, none, numbers, numbers, numbers)
    return Trace(events, [], [], [], {}, {}, 0, 0, health.notes(), producer=PRODUCER, snapshot=snapshot)


def read_snapshot(
    stream: BinaryIO,
    *,
    size: int = 0,
    report: Report = ignore_progress,
    health: HealthLog | None = None,
    preview: Callable[[RecordedSnapshot], object] | None = None,
) -> RecordedSnapshot:
    """Read a snapshot, plain or packed with gzip; of a truncated file, what precedes the cut.

    size     stored bytes, for the progress (0 if unknown)
    preview  takes the segments and blocks of a large file before its history is read

    Raises TraceError if the file isn't a pickle of plain values, or holds neither segments nor a history.
    """
    health = HealthLog() if health is None else health
    source = UnpackedStream(stream, size, report, health)
    library = load_library()
    if library is not None:
        try:
            return read_native(library, source.read_into, preview)
        except UnusualPickleError as error:
            if not stream.seekable():
                raise TraceError(f"the pickle is not one that PyTorch writes: {error}", hint=_HINT) from error
            stream.seek(0)
            source = UnpackedStream(stream, size, report, health)
    with without_gc():  # millions of containers, none of which is garbage
        try:
            pickle = read_plain_prefix(cast(BinaryIO, io.BufferedReader(_UnpackedSnapshot(source), 1 << 20)))
            return _SnapshotBuilder().build(pickle)
        except PickleLimitError as error:
            raise _limit_error(error, unusual=library is not None) from error


def _limit_error(error: PickleLimitError, unusual: bool) -> TraceError:
    """Return what to do about a file that only the native reader reads.

    unusual  that one couldn't read it either
    """
    if unusual:
        return TraceError(f"{error.message}, and the pickle is not one that PyTorch writes", hint=_HINT)
    state = describe_state()
    remedy = (
        "unset TORCH_PROFILER_NATIVE"
        if state.startswith("turned off")
        else "install a wheel of torch-tb-profiler for this platform"
    )
    return TraceError(
        f"{error.message}; only the native reader, which is {state}, reads such files",
        hint=f"{remedy}, or {error.hint}",
    )


class _UnpackedSnapshot(io.RawIOBase):
    """The unpacked bytes of a stream as a raw stream."""

    def __init__(self, source: UnpackedStream) -> None:
        self._source = source

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        return self._source.read_into(memoryview(target))


class _SnapshotBuilder:
    """Collects rows by kind and interned stacks; counts unreadable entries.

    Several references to one entry of the pickle count as several entries, so _MAX_ENTRIES bounds the memory.
    """

    def __init__(self) -> None:
        self.segments: list[tuple[int, ...]] = []
        self.blocks: list[tuple[int, ...]] = []
        self.history: list[tuple[int, ...]] = []
        self.devices: list[tuple[int, int, int]] = []
        self.notes: list[tuple[int, ...]] = []
        self.texts: dict[str, int] = {"": 0}
        self.labels: dict[tuple[int, ...], int] = {}
        self.pools: dict[tuple[int, int], int] = {(0, 0): 0}
        self.frames: dict[tuple[int, int, int], int] = {}
        self.stacks: dict[tuple[int, ...], int] = {(): 0}
        # Keys are ids of objects; the pickle's value outlives the builder, so no id is reused.
        self.stack_codes: dict[int, int] = {}
        self.frame_codes: dict[int, int] = {}
        self.skipped = 0
        self.entries = 0

    def build(self, pickle: PlainPickle) -> RecordedSnapshot:
        top = pickle.value if type(pickle.value) is dict else {"segments": pickle.value}
        segments, traces = top.get("segments"), top.get("device_traces")
        if type(segments) is not list and type(traces) is not list:
            raise TraceError(
                "the pickle is not a memory snapshot: it has no list of segments",
                hint="`torch.cuda.memory._dump_snapshot` writes one",
            )
        for segment in _list(segments):
            self._add_segment(segment)
        for device, trace in enumerate(_list(traces)):
            begin = len(self.history)
            for entry in _list(trace):
                self._add_entry(entry)
            if len(self.history) > begin:
                self.devices.append((device, begin, len(self.history)))
        for note in _list(top.get("external_annotations")):
            self._add_note(note)
        columns: dict[str, Any] = {
            **_columns(self.segments, "segments", ("device", "i"), ("address", "q"), ("stream", "q"),
                       ("size", "q"),
                       ("kind", "i"), ("pool", "i"), ("expandable", "b")),
            **_columns(self.blocks, "blocks", ("segment", "i"), ("address", "q"), ("size", "q"),
                       ("requested", "q"), ("state", "b"), ("stack", "i")),
            **_columns(self.history, "history", ("action", "b"), ("address", "q"), ("size", "q"),
                       ("time", "q"), ("stack", "i"), ("label", "i")),
            **_columns(self.devices, "devices", ("device", "i"), ("begin", "q"), ("end", "q")),
            **_columns([*self.labels], "labels", ("stream", "q"), ("pool", "i"), ("context", "i"),
                       ("metadata", "i")),
            **_columns([*self.pools], "pools", ("first", "q"), ("second", "q")),
            **_columns([*self.frames], "frames", ("file", "i"), ("name", "i"), ("line", "i")),
            **_columns(self.notes, "notes", ("time", "q"), ("name", "i"), ("stage", "i"), ("device", "i")),
            "stack_ends": np.cumsum([len(stack) for stack in self.stacks], dtype=np.int64),
            "stack_frames": np.array([frame for stack in self.stacks for frame in stack], np.int32),
        }  # fmt: skip
        columns["history.freed"] = freed_allocations(
            columns["history.action"],
            columns["history.address"],
            columns["devices.begin"],
            columns["devices.end"],
        )
        known = SnapshotFacts(
            _settings(top.get("allocator_settings")), self.skipped, pickle.bytes, pickle.incomplete
        )
        return RecordedSnapshot.from_columns(columns, [*self.texts], known)

    def _count_entry(self) -> None:
        self.entries += 1
        if self.entries > _MAX_ENTRIES:
            raise PickleLimitError(
                f"the snapshot has more than {_MAX_ENTRIES:,} entries",
                hint="record less: `torch.cuda.memory._record_memory_history(max_entries=100_000)`",
            )

    def _add_segment(self, segment: Any) -> None:
        self._count_entry()
        size = _int(segment, "total_size")
        if size == ABSENT:
            self.skipped += 1
            return
        device = min(max(0, _int(segment, "device", 0)), 2**31 - 1)
        address, stream = _int(segment, "address", 0), _int(segment, "stream", 0)
        kind, pool = self._text(segment.get("segment_type")), self._pool(segment.get("segment_pool_id"))
        expandable = segment.get("is_expandable") is True
        self.segments.append((device, address, stream, size, kind, pool, expandable))
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
        address, requested = _int(block, "address"), _int(block, "requested_size")
        self.blocks.append((segment, address, size, requested, code, self._stack_code(frames)))

    def _add_entry(self, entry: Any) -> None:
        self._count_entry()
        action = entry.get("action") if type(entry) is dict else None
        size = _int(entry, "size")
        if type(action) is not str or size == ABSENT:
            self.skipped += 1
            return
        code = _ACTIONS.get(action, OTHER)
        address = _int(entry, "device_free" if code == OUT_OF_MEMORY else "addr")
        label = (
            _int(entry, "stream", 0),
            self._pool(entry.get("pool_id")),
            self._text(entry.get("compile_context")),
            self._text(entry.get("user_metadata")),
        )
        label_code = self.labels.setdefault(label, len(self.labels))
        stack = self._stack_code(entry.get("frames"))
        self.history.append((code, address, size, _int(entry, "time_us"), stack, label_code))

    def _add_note(self, note: Any) -> None:
        time = _int(note, "time_us")
        if time != ABSENT:
            name, stage = self._text(note.get("name")), self._text(note.get("stage"))
            device = _int(note, "device", 0)
            self.notes.append((time, name, stage, device if 0 <= device < 2**31 else 0))

    def _text(self, value: Any) -> int:
        return self.texts.setdefault(value, len(self.texts)) if type(value) is str else 0

    def _pool(self, value: Any) -> int:
        if type(value) not in (tuple, list) or len(value) != 2 or any(type(part) is not int for part in value):
            return 0
        return self.pools.setdefault((_wrap(value[0]), _wrap(value[1])), len(self.pools))

    def _stack_code(self, frames: Any) -> int:
        code = self.stack_codes.get(id(frames))
        if code is None:
            stack = tuple([self._frame_code(frame) for frame in _list(frames)[:MAX_FRAMES]])
            code = self.stack_codes[id(frames)] = self.stacks.setdefault(stack, len(self.stacks))
        return code

    def _frame_code(self, frame: Any) -> int:
        code = self.frame_codes.get(id(frame))
        if code is None:
            fields = frame if type(frame) is dict else {}
            line = fields.get("line")
            row = (
                self._text(fields.get("filename")),
                self._text(fields.get("name")),
                line if type(line) is int and 0 < line < 2**31 else 0,
            )
            code = self.frame_codes[id(frame)] = self.frames.setdefault(row, len(self.frames))
        return code


def _settings(value: Any) -> Mapping[str, bool | int | float | str | None]:
    if type(value) is not dict:
        return {}
    return {key: each for key, each in value.items() if each is None or type(each) in (bool, int, float, str)}


def _list(value: Any) -> list[Any]:
    return value if type(value) is list else []


def _wrap(value: int) -> int:
    """Wrap a number to 64 bits as C++ would (addresses are unsigned)."""
    return (value + 2**63) % 2**64 - 2**63


def _int(entry: Any, key: str, default: int = int(ABSENT)) -> int:
    """Return an integer of a dict, wrapped to 64 bits."""
    value = entry.get(key) if type(entry) is dict else None
    return _wrap(value) if type(value) is int else default


def _columns(rows: Sequence[tuple[int, ...]], table: str, *columns: tuple[str, str]) -> dict[str, Any]:
    cells = zip(*rows, strict=True) if rows else [()] * len(columns)
    return {f"{table}.{name}": np.array(column, kind) for column, (name, kind) in zip(cells, columns, strict=True)}
