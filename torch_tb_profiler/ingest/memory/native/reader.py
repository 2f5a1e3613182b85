"""Read a memory snapshot with the native reader (`native/snapshot.c`), in pieces, into columns."""

from __future__ import annotations

import ctypes
import secrets
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from torch_tb_profiler.base.arrays import ArrowTexts, build_text_array, text_array_from_bytes
from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.base.memory import growing_in_place
from torch_tb_profiler.ingest.compiled import CompiledLibrary, is_enabled
from torch_tb_profiler.model.snapshots import RecordedSnapshot, SnapshotFacts, freed_allocations

PIECE_BYTES = 1 << 20

MIN_BUDGET_BYTES = 64 << 20
"""Bytes that the reader may use for any file, in addition to as many as it has read.

Files that PyTorch writes need less than half of that.
"""

_HINT = "is this a file that `torch.cuda.memory._dump_snapshot` wrote?"


SnapshotLibrary = Any
"""A loaded library; ctypes gives its functions no types."""

_INT, _LONG, _POINTER = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p

_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "snapshot_abi": (_INT,),
    "snapshot_new": (_POINTER, _LONG, _LONG),
    "snapshot_free": (None, _POINTER),
    "snapshot_read": (ctypes.c_int, _POINTER, _POINTER, _LONG, ctypes.c_bool, _POINTER),
    "snapshot_finish": (ctypes.c_int, _POINTER),
    "snapshot_column": (_POINTER, _POINTER, _INT, _POINTER),
    "snapshot_facts": (None, _POINTER, _POINTER),
    "snapshot_say_crash": (None, ctypes.c_char_p),
}
"""Function name -> result type and parameter types, as in native/snapshot.c."""

LIBRARY = CompiledLibrary("snapshot", "snapshot", 2, _FUNCTIONS)


def load_library() -> SnapshotLibrary | None:
    """Return the library, or None if it is missing or not enabled in this process."""
    return open_library() if is_enabled() else None


def describe_state() -> str:
    """Return in words whether the native reader is in use where it is enabled."""
    return LIBRARY.describe_state(Path(__file__).parent)


@cache
def open_library() -> SnapshotLibrary | None:
    """Return the library, or None if it is missing; one that can't be loaded is logged."""
    return LIBRARY.load(Path(__file__).parent)


class Status(IntEnum):
    """How far a reading came, as native/snapshot_tables.h has it."""

    READING = 0
    DONE = 1
    TRUNCATED = 2
    REFUSED = 3
    MALFORMED = 4
    UNUSUAL = 5
    OVER_BUDGET = 6
    NO_MEMORY = 7


class UnusualPickleError(Exception):
    """The pickle is not one that PyTorch writes; it may be a snapshot that another program wrote."""


_SEGMENT = [(name, "i8") for name in ("address", "size", "stream")]
_SEGMENT += [(name, "u4") for name in ("device", "kind", "pool", "expandable", "begin", "end")]
_TABLES: dict[str, Any] = {
    "action": "u1",
    "address": "i8",
    "size": "i8",
    "time": "i8",
    "stack": "u4",
    "label": "u4",
    "segments": _SEGMENT,
    "blocks": [("address", "i8"), ("size", "i8"), ("requested", "i8"), ("stack", "u4"), ("state", "u4")],
    "notes": [("time", "i8"), ("name", "u4"), ("stage", "u4"), ("device", "u4"), ("unused", "u4")],
    "cells": [("bits", "u8"), ("object", "u4"), ("key", "u4"), ("type", "u4"), ("unused", "u4")],
    "parts": [("device", "u4"), ("begin", "u4"), ("end", "u4")],
    "labels": [("stream", "i8"), ("pool", "u4"), ("context", "u4"), ("metadata", "u4"), ("unused", "u4")],
    "pools": [("first", "i8"), ("second", "i8")],
    "frames": [("file", "u4"), ("name", "u4"), ("line", "u4")],
    "stack_ends": "u8",
    "stack_frames": "u4",
    "text_ends": "u8",
    "bytes": "u1",
    "freed": "i4",
}
"""Columns and tables by their numbers in `snapshot_column`."""


class _NativeReader:
    """A reader of one file; `tables` share its memory, which is freed with the last of them."""

    def __init__(self, library: SnapshotLibrary) -> None:
        self._library = library
        self._handle = library.snapshot_new(secrets.randbits(64), MIN_BUDGET_BYTES)
        if not self._handle:
            raise MemoryError

    def __del__(self) -> None:
        self._library.snapshot_free(self._handle)

    def read(
        self,
        read_into: Callable[[memoryview], int],
        preview: Callable[[RecordedSnapshot], object] | None = None,
    ) -> Status:
        """Read a file to its end, or to where it can't be read.

        preview  takes the segments and blocks of a large file once, as soon as its history begins
        """
        buffer = bytearray(PIECE_BYTES)
        view = memoryview(buffer)
        address = ctypes.addressof(ctypes.c_char.from_buffer(buffer))
        used, pending, status = ctypes.c_uint64(), 0, 0
        while status == Status.READING:
            got = read_into(view[pending:])
            arguments = address, pending + got, got == 0, ctypes.byref(used)
            status = self._library.snapshot_read(self._handle, *arguments)
            pending += got - used.value
            if pending:
                ctypes.memmove(address, address + used.value, pending)
            if preview is not None and status == Status.READING and self._count("action"):
                if self._count("segments"):
                    preview(self._segments_so_far())
                preview = None
        return Status(status)

    def _count(self, table: str) -> int:
        count = ctypes.c_uint64()
        self._library.snapshot_column(self._handle, [*_TABLES].index(table), ctypes.byref(count))
        return count.value

    def _segments_so_far(self) -> RecordedSnapshot:
        """Return a snapshot without a history, with copies of the tables, which move when they grow."""
        without = ("freed", "action", "address", "size", "time", "stack", "label", "parts", "notes", "cells")
        tables = {
            name: table[:0].copy() if name in without else table.copy() for name, table in self.tables().items()
        }
        facts = SnapshotFacts({}, 0, self.facts()[0], "its history is still being read", preview=True)
        return _build_snapshot(tables, [0, len(tables["segments"]), 0, 0], 0, facts)

    def finish(self) -> bool:
        """Return whether there is a snapshot in what was read; only tables can be read afterwards."""
        found = int(self._library.snapshot_finish(self._handle))
        if found < 0:
            raise MemoryError
        return found == 1

    def facts(self) -> list[int]:
        """Return offset, skipped entries, the settings' object, segments and notes (begin, end), bytes taken."""
        values = (ctypes.c_uint64 * 8)()
        self._library.snapshot_facts(self._handle, ctypes.byref(values))
        return [*values]

    def tables(self) -> dict[str, npt.NDArray[Any]]:
        """Return the columns and tables by name, as views of the reader's memory."""
        tables = {}
        count = ctypes.c_uint64()
        for number, (name, kind) in enumerate(_TABLES.items()):
            address = self._library.snapshot_column(self._handle, number, ctypes.byref(count))
            dtype = np.dtype(kind)
            if not address or not count.value:
                tables[name] = np.empty(0, dtype)
                continue
            memory: Any = (ctypes.c_char * (count.value * dtype.itemsize)).from_address(address)
            memory.reader = self  # it lives as long as the array
            tables[name] = np.frombuffer(memory, dtype)
        return tables


def read_native(
    library: SnapshotLibrary,
    read_into: Callable[[memoryview], int],
    preview: Callable[[RecordedSnapshot], object] | None = None,
) -> RecordedSnapshot:
    """Read a snapshot in pieces.

    read_into  fills the front of a buffer with unpacked bytes; returns how many, 0 at the end
    preview    takes the segments and blocks of a large file before its history is read

    Raises TraceError if the file is refused or holds no snapshot, UnusualPickleError if another reader may read
    it.
    """
    with growing_in_place():
        reader = _NativeReader(library)
        status = reader.read(read_into, preview)
        found = reader.finish()
    offset, skipped, settings, *ranges, _ = reader.facts()
    if status == Status.REFUSED:
        raise TraceError(
            f"refused: the pickle names, makes, or calls an object, at byte {offset}",
            hint="a memory snapshot has only lists, dicts, numbers, and text; don't open this file elsewhere",
        )
    if status == Status.NO_MEMORY:
        raise MemoryError
    if status == Status.UNUSUAL:
        raise UnusualPickleError(f"byte {offset}")
    if not found:
        raise TraceError(_explain_failure(status, offset), hint=_HINT)
    return _build_snapshot(
        reader.tables(), ranges, settings, SnapshotFacts({}, skipped, offset, _incomplete(status, offset))
    )


def _explain_failure(status: Status, offset: int) -> str:
    if status == Status.DONE:
        return "the pickle is not a memory snapshot: it has no list of segments"
    return f"the pickle holds no memory snapshot that can be read: {_incomplete(status, offset)}"


def _incomplete(status: Status, offset: int) -> str | None:
    match status:
        case Status.TRUNCATED:
            return f"the pickle is truncated at byte {offset}"
        case Status.MALFORMED:
            return f"malformed pickle before byte {offset}"
        case Status.OVER_BUDGET:
            return f"it needs more memory than its own size, from byte {offset} on"
    return None


def _build_snapshot(
    tables: Mapping[str, npt.NDArray[Any]], ranges: list[int], settings: int, facts: SnapshotFacts
) -> RecordedSnapshot:
    segments, notes = tables["segments"][ranges[0] : ranges[1]], tables["notes"][ranges[2] : ranges[3]]
    counts = segments["end"].astype(np.int64) - segments["begin"]
    if int(counts.sum()) > len(tables["blocks"]):
        raise TraceError("malformed pickle: segments share their blocks", hint=_HINT)
    first = np.cumsum(counts) - counts
    chosen = np.arange(int(counts.sum())) + np.repeat(segments["begin"].astype(np.int64) - first, counts)
    blocks = tables["blocks"][chosen]
    parts, repeated = _distinct_parts(tables["parts"])
    columns: dict[str, npt.NDArray[Any]] = {
        "segments.device": segments["device"].astype(np.int32),
        "segments.kind": segments["kind"].astype(np.int32),
        "segments.pool": segments["pool"].astype(np.int32),
        "segments.expandable": segments["expandable"].astype(np.int8),
        "blocks.segment": np.repeat(np.arange(len(segments), dtype=np.int32), counts),
        "blocks.state": blocks["state"].astype(np.int8),
        "blocks.stack": blocks["stack"].astype(np.int32),
        "history.action": tables["action"].view(np.int8),
        "history.stack": tables["stack"].view(np.int32),
        "history.label": tables["label"].view(np.int32),
        "devices.device": parts["device"].astype(np.int32),
        "devices.begin": parts["begin"].astype(np.int64),
        "devices.end": parts["end"].astype(np.int64),
        "notes.device": notes["device"].astype(np.int32),
        "notes.name": notes["name"].astype(np.int32),
        "notes.stage": notes["stage"].astype(np.int32),
        "notes.time": notes["time"].copy(),
        "stack_ends": (tables["stack_ends"] // 4).astype(np.int64),
        "stack_frames": tables["stack_frames"].view(np.int32),
    }
    columns |= {f"segments.{name}": segments[name].copy() for name in ("address", "stream", "size")}
    columns |= {f"blocks.{name}": blocks[name].copy() for name in ("address", "size", "requested")}
    columns |= {f"history.{name}": tables[name] for name in ("address", "size", "time")}
    freed = tables["freed"]
    if len(freed) != len(tables["action"]):  # it had no memory for them
        freed = freed_allocations(columns["history.action"], tables["address"], parts["begin"], parts["end"])
    columns["history.freed"] = freed
    labels, pools, frames = tables["labels"], tables["pools"], tables["frames"]
    columns |= {f"labels.{name}": labels[name].astype(np.int32) for name in ("pool", "context", "metadata")}
    columns |= {"labels.stream": labels["stream"].copy()}
    columns |= {f"pools.{name}": pools[name].copy() for name in ("first", "second")}
    columns |= {f"frames.{name}": frames[name].astype(np.int32) for name in ("file", "name", "line")}
    texts = _texts(tables["text_ends"], tables["bytes"])
    facts = msgspec.structs.replace(
        facts, settings=_settings(tables["cells"], settings, texts), skipped=facts.skipped + repeated
    )
    return RecordedSnapshot.from_columns(columns, texts, facts)


def _distinct_parts(parts: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], int]:
    """Return the histories of devices without those that repeat an earlier one, and the entries of those."""
    _, first = np.unique(parts["begin"], return_index=True)
    keep = np.zeros(len(parts), np.bool_)
    keep[first] = True
    return parts[keep], int((parts["end"][~keep].astype(np.int64) - parts["begin"][~keep]).sum())


def _texts(ends: npt.NDArray[Any], content: npt.NDArray[Any]) -> ArrowTexts:
    lengths = ends.astype(np.int64)
    lengths[1:] -= lengths[:-1].copy()
    raw = content.tobytes()
    try:
        raw.decode()
        # Half a character at the end of a text and the other half at the next one's beginning are valid together.
        starts = ends[:-1][lengths[1:] > 0].astype(np.int64)
        whole = not ((content[starts] & 0xC0) == 0x80).any()
    except UnicodeDecodeError:
        whole = False
    if whole:
        return ArrowTexts(text_array_from_bytes(lengths, raw))
    bounds = [0, *ends.tolist()]
    texts = [raw[begin:end].decode("utf-8", "replace") for begin, end in pairwise(bounds)]
    return ArrowTexts(build_text_array(texts))


def _settings(
    cells: npt.NDArray[Any], settings: int, texts: Sequence[str]
) -> dict[str, bool | int | float | str | None]:
    found: dict[str, bool | int | float | str | None] = {}
    for cell in cells[cells["object"] == settings]:
        key, bits = texts[int(cell["key"])], int(cell["bits"])
        match int(cell["type"]):
            case 0:
                found[key] = None
            case 1:
                found[key] = bits - 2**64 if bits >= 2**63 else bits
            case 2:
                found[key] = texts[bits]
            case 6:
                found[key] = bool(bits)
            case 7:
                found[key] = float(np.uint64(bits).view(np.float64))
    return found
