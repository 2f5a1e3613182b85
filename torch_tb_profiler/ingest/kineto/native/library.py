"""Load the native library with ctypes: plain C that needs no Python headers and releases the GIL.

One file serves every Python version of a platform. Where it is missing or can't be loaded,
`ingest/kineto/decode.py` reads everything.

It is used only where TORCH_PROFILER_NATIVE enables it: in worker processes, and in commands that read a large
file. A crash there costs one file, and a line on standard error says what to do. The process of a server, a
notebook, or a training job must not take that risk.
"""

from __future__ import annotations

import ctypes
import logging
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

LIBRARY_NAME = {"darwin": "libevents.dylib", "win32": "events.dll"}.get(sys.platform, "libevents.so")
"""File name of the library, which setup.py builds beside this file."""

CRASH_MESSAGE = (
    f"{LIBRARY_NAME}: the native reader crashed on a file; "
    "set TORCH_PROFILER_NATIVE=0 to read without it, and please report it\n"
)
"""Written to standard error before the process ends."""

_ABI = 5
_ABSENT = "not part of this installation"
_SWITCH = "TORCH_PROFILER_NATIVE"
_LOG = logging.getLogger(__name__)

NativeLibrary = Any
"""A loaded library; ctypes gives its functions no types."""


class ReaderSizes(ctypes.Structure):
    """Counters of the reader after a block.

    rows              not yet taken over
    categories, names tokens of these tables
    own, inner        keys of events, and of their arguments
    plain             events of the block without a category
    decimals          1 if times are rounded as decimals from now on, as doubles if 0
    rounded           1 if a time of the block was rounded as a double
    bytes             of tokens
    """

    _fields_ = (
        ("rows", ctypes.c_uint32),
        ("categories", ctypes.c_uint32),
        ("names", ctypes.c_uint32),
        ("own", ctypes.c_uint32),
        ("inner", ctypes.c_uint32),
        ("plain", ctypes.c_uint32),
        ("decimals", ctypes.c_uint32),
        ("rounded", ctypes.c_uint32),
        ("bytes", ctypes.c_uint64),
    )


class BlockPlace(ctypes.Structure):
    """Address and length of a block."""

    _fields_ = (("bytes", ctypes.c_void_p), ("length", ctypes.c_uint64))


_INT, _LONG, _SIZE, _POINTER = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p

_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "reader_abi": (_INT,),
    "reader_new": (_POINTER, _LONG),
    "reader_free": (None, _POINTER),
    "reader_add": (ctypes.c_int, _POINTER, _POINTER, ctypes.c_size_t, _POINTER),
    "reader_add_all": (_INT, _POINTER, _POINTER, _INT, _POINTER, _POINTER),
    "reader_use_decimals": (None, _POINTER),
    "reader_column": (_POINTER, _POINTER, _INT),
    "reader_threads": (_INT, _POINTER, _INT, _POINTER),
    "reader_key": (_INT, _POINTER, _INT, _INT, _POINTER, _POINTER, _POINTER),
    "reader_cells": (_INT, _POINTER, _INT, _INT, _INT, _POINTER, _POINTER),
    "reader_tokens": (_INT, _POINTER, _INT, _INT, _POINTER, _POINTER),
    "reader_key_tokens": (_INT, _POINTER, _INT, _INT, _INT, _INT, _POINTER, _POINTER),
    "reader_clear": (None, _POINTER),
    "reader_forget": (None, _POINTER),
    "reader_nest": (None, _POINTER, _POINTER, ctypes.c_size_t, _POINTER, _POINTER, _POINTER, _POINTER),
    "reader_arrange": (ctypes.c_int, _POINTER, _SIZE, *[_POINTER] * 3, _SIZE, _SIZE, *[_POINTER] * 3),
    "reader_nest_lane": (_SIZE, _POINTER, _SIZE, ctypes.c_int32, *[_POINTER] * 5),
    "reader_changes": (_SIZE, _POINTER, _SIZE, *[_POINTER] * 3, _SIZE, *[_POINTER] * 3),
    "reader_enclosing": (None, _POINTER, _SIZE, _POINTER, _POINTER, _SIZE, _POINTER),
    "reader_say_crash": (None, ctypes.c_char_p),
}
"""Function name -> result type and parameter types, as in native/reader.c."""


def load_library() -> NativeLibrary | None:
    """Return the library, or None if it is missing or not enabled in this process."""
    return _load() if os.environ.get(_SWITCH, "0") != "0" else None


def describe_state() -> str:
    """Return in words whether the native reader is in use where it is enabled."""
    if os.environ.get(_SWITCH) == "0":
        return f"turned off by {_SWITCH}=0"
    library = _open()
    return library if isinstance(library, str) else "in use"


@cache
def _load() -> NativeLibrary | None:
    library = _open()
    if isinstance(library, str):
        if library is not _ABSENT:
            _LOG.warning("%s %s; reading without it", LIBRARY_NAME, library)
        return None
    library.reader_say_crash(CRASH_MESSAGE.encode())
    return library


def _open() -> NativeLibrary | str:
    """Return the library, or in words why it is unavailable."""
    path = Path(__file__).with_name(LIBRARY_NAME)
    if not path.is_file():
        return _ABSENT
    try:
        library = ctypes.CDLL(str(path))
        for name, (result, *parameters) in _FUNCTIONS.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, parameters
    except (OSError, AttributeError) as error:
        return f"can't be loaded: {error}"
    if (version := library.reader_abi()) != _ABI:
        return f"has another version ({version}, not {_ABI}); reinstall this package"
    return library
