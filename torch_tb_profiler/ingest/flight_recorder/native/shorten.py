"""A dump that the native reader has shortened: entries that a diagnosis reads in full, and what the others were.

Nearly all of the thousands of entries of a ring are finished collectives, of which only kind and number count.
`native/recorder.c` reads a pickle without making objects of these. What no recorder writes, and so everything that
is damaged or hostile, it leaves to `content.py`.
"""

from __future__ import annotations

import ctypes
import secrets
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from torch_tb_profiler.base.threadsafe import threadsafe
from torch_tb_profiler.ingest.compiled import CompiledLibrary, is_enabled

_SIZE, _POINTER = ctypes.c_uint64, ctypes.c_void_p

LIBRARY = CompiledLibrary(
    "recorder",
    "recorder",
    1,
    {
        "recorder_abi": (ctypes.c_uint32,),
        "recorder_shorten": (_POINTER, ctypes.c_char_p, _SIZE, _SIZE, _POINTER),
        "recorder_free": (None, _POINTER),
        "recorder_say_crash": (None, ctypes.c_char_p),
    },
)


class ShortenedDump(msgspec.Struct, frozen=True):
    """A dump in short.

    top         the dump without its entries
    entries     pending calls, sends and receives, and the last finished calls of each group
    groups      [name, description] of the process group of any entry
    signatures  (profiling name, input sizes) of any entry
    finished    of each other entry the index of its group, its sequence number, the index of its signature
    count       all entries
    first       record id of the first
    last_ns     epoch time of the last call
    gap_ns      longest time between two calls
    """

    top: dict[str, Any]
    entries: list[dict[str, Any]]
    groups: list[list[Any]]
    signatures: list[tuple[str, Any]]
    finished: list[int]
    count: int
    first: int
    last_ns: int
    gap_ns: int


def shorten(data: bytes) -> ShortenedDump | None:
    """Return a pickled dump in short; None if the native reader is not in use, or leaves it to the other one."""
    library = _open_library() if is_enabled() and data[:1] == b"\x80" else None
    if library is None:
        return None
    length = ctypes.c_uint64()
    address = library.recorder_shorten(data, len(data), secrets.randbits(64), ctypes.byref(length))
    if not address:
        return None
    try:
        return msgspec.json.decode(ctypes.string_at(address, length.value), type=threadsafe(ShortenedDump))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    finally:
        library.recorder_free(address)


@cache
def _open_library() -> Any | None:
    return LIBRARY.load(Path(__file__).parent)
