"""Load the native reader of memory snapshots, where it is built and enabled.

As for traces (`ingest/kineto/native/library.py`), it is used only where TORCH_PROFILER_NATIVE enables it: in
worker processes, and in commands that read a large file.
"""

from __future__ import annotations

import ctypes
import logging
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

LIBRARY_NAME = {"darwin": "libsnapshot.dylib", "win32": "snapshot.dll"}.get(sys.platform, "libsnapshot.so")
"""File name of the library, which setup.py builds beside this file."""

CRASH_MESSAGE = (
    f"{LIBRARY_NAME}: the native reader crashed on a file; "
    "set TORCH_PROFILER_NATIVE=0 to read without it, and please report it\n"
)
"""Written to standard error before the process ends."""

_ABI = 1
_SWITCH = "TORCH_PROFILER_NATIVE"
_LOG = logging.getLogger(__name__)

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


def load_library() -> SnapshotLibrary | None:
    """Return the library, or None if it is missing or not enabled in this process."""
    return open_library() if os.environ.get(_SWITCH, "0") != "0" else None


@cache
def open_library() -> SnapshotLibrary | None:
    """Return the library, or None if it is missing; one that can't be loaded is logged."""
    path = Path(__file__).with_name(LIBRARY_NAME)
    if not path.is_file():
        return None
    try:
        library = ctypes.CDLL(str(path))
        for name, (result, *parameters) in _FUNCTIONS.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, parameters
    except (OSError, AttributeError) as error:
        _LOG.warning("%s can't be loaded: %s; reading without it", LIBRARY_NAME, error)
        return None
    if (version := library.snapshot_abi()) != _ABI:
        _LOG.warning("%s has another version (%d, not %d); reading without it", LIBRARY_NAME, version, _ABI)
        return None
    library.snapshot_say_crash(CRASH_MESSAGE.encode())
    return library
