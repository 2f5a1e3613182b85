"""The compiled reader of traces (`native/reader.c`); `ingest/kineto/decode.py` reads where it is missing."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

from torch_tb_profiler.ingest.compiled import CompiledLibrary, is_enabled

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


class CodePlace(ctypes.Structure):
    """Address and number of the codes that stand for those of the reader."""

    _fields_ = (("codes", ctypes.c_void_p), ("count", ctypes.c_uint64))


_INT, _LONG, _SIZE, _POINTER = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p

_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "reader_abi": (_INT,),
    "reader_new": (_POINTER, _LONG),
    "reader_free": (None, _POINTER),
    "reader_add": (ctypes.c_int, _POINTER, _POINTER, ctypes.c_size_t, _POINTER),
    "reader_add_all": (_INT, _POINTER, _POINTER, _INT, _POINTER, _POINTER),
    "reader_use_decimals": (None, _POINTER),
    "reader_take_rows": (None, _POINTER, _POINTER, _POINTER),
    "reader_take_cells": (None, _POINTER, _INT, _INT, _INT, ctypes.c_int32, *[_POINTER] * 3),
    "reader_threads": (_INT, _POINTER, _INT, _POINTER),
    "reader_key": (_INT, _POINTER, _INT, _INT, _POINTER, _POINTER, _POINTER),
    "reader_cells": (None, _POINTER, _INT, _INT, _POINTER),
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


LIBRARY = CompiledLibrary("events", "reader", 8, _FUNCTIONS)


def load_library() -> NativeLibrary | None:
    """Return the library, or None if it is missing or not enabled in this process."""
    return _load() if is_enabled() else None


def describe_state() -> str:
    """Return in words whether the native reader is in use where it is enabled."""
    return LIBRARY.describe_state(Path(__file__).parent)


@cache
def _load() -> NativeLibrary | None:
    return LIBRARY.load(Path(__file__).parent)
