"""The compiled reader of memory snapshots (`native/snapshot.c`)."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

from torch_tb_profiler.ingest.compiled import CompiledLibrary, is_enabled

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
