"""Limit the memory of a process, where the system supports that, and control when it returns freed memory."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]


def limit_memory(memory: int) -> None:
    """Limit the data of this process to `memory` bytes from now on; 0 sets no limit."""
    if memory and resource is not None:
        hard_limit = resource.getrlimit(resource.RLIMIT_DATA)[1]
        allowed = memory if hard_limit == resource.RLIM_INFINITY else min(memory, hard_limit)
        resource.setrlimit(resource.RLIMIT_DATA, (allowed, hard_limit))


def release_memory() -> None:
    """Return freed memory to the system, where the C library would otherwise keep it (glibc).

    In a process that recycles memory, large arrays go back to the system as soon as they are freed, from now on
    until `resume_recycling`.
    """
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)
        global _is_recycling
        if _is_recycling:
            _is_recycling = False
            recycle_arrays(_LARGE_ARRAY_BYTES, _UNTRIMMED_BYTES)


def keeps_freed_memory() -> bool:
    """Return whether this process recycles memory and hasn't released it since."""
    return _is_recycling


def recycle_arrays(large_bytes: int = 1 << 26, retained_bytes: int = 1 << 28) -> None:
    """Keep freed arrays in this process for the next ones, except for those of `large_bytes` and more (glibc).

    It keeps about `retained_bytes` at most. Nothing changes in a process that recycles all memory.
    """
    if not _is_recycling and sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):
        libc.mallopt(_M_MMAP_THRESHOLD, large_bytes)
        libc.mallopt(_M_TRIM_THRESHOLD, retained_bytes)


# From malloc.h of glibc; other C libraries have no such options.
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -2, -3, -8
_MAX_INT = (1 << 31) - 1
_RECYCLED_BYTES = 1 << 30
"""Size from which a block is a mapping of its own while freed memory is kept."""
_LARGE_BYTES = 1 << 17

_recycles = False
"""True once this process has called `recycle_memory`."""

_is_recycling = False
"""True from then on until `release_memory`."""

_LARGE_ARRAY_BYTES = 1 << 24
"""Bytes from which an array of an analysis goes back when it is freed: a column of two million events.

Smaller ones are recycled: clearing their pages again and again would take longer than the analysis."""

_UNTRIMMED_BYTES = 1 << 27
"""Freed bytes that such a process keeps at most."""


def recycle_memory() -> None:
    """Keep freed memory in this process for the next column, until `release_memory` (glibc).

    By default each large column is a memory mapping of its own, whose pages the system clears one by one and takes
    back with the column. If numpy is imported after this, it doesn't ask for huge pages either: the system would
    have to move other pages to make room for them.
    """
    os.environ.setdefault("NUMPY_MADVISE_HUGEPAGE", "0")
    global _recycles, _is_recycling
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):
        libc.mallopt(_M_MMAP_THRESHOLD, _RECYCLED_BYTES)
        libc.mallopt(_M_TRIM_THRESHOLD, _MAX_INT)
        libc.mallopt(_M_TOP_PAD, 1 << 26)
        _recycles = _is_recycling = True


def share_memory() -> None:
    """Let threads that start from now on take what others have freed (glibc), each of which would have its own."""
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):
        libc.mallopt(_M_ARENA_MAX, 1)


_MADV_POPULATE_WRITE = 23
"""From linux/mman.h, since Linux 5.14."""

_POPULATED_BYTES = 1 << 24
"""Bytes that the system is asked for at once: meanwhile no other thread can map memory."""


def populate_memory(size: int) -> threading.Thread | None:
    """Let the system clear the pages of the next columns, `size` bytes in all, in a thread of its own (glibc).

    Where memory is recycled, a page is cleared when a column first reaches it, and the column waits for that. What
    is asked for counts as used from then on, so it must be needed anyway.
    """
    size = min(size, _RECYCLED_BYTES - _POPULATED_BYTES)  # a larger one would be a mapping of its own
    if not _is_recycling or size < 2 * _POPULATED_BYTES:
        return None
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, (ctypes.c_size_t,)
    libc.free.restype, libc.free.argtypes = None, (ctypes.c_void_p,)
    libc.madvise.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    begin = libc.malloc(size)
    if begin is None:
        return None
    libc.free(begin)  # the next columns lie there, and may do so already while its pages are cleared

    def populate() -> None:
        first = -(-begin // mmap.PAGESIZE) * mmap.PAGESIZE
        for at in range(first, begin + size - _POPULATED_BYTES, _POPULATED_BYTES):
            if libc.madvise(at, _POPULATED_BYTES, _MADV_POPULATE_WRITE):
                return  # an older system, or the memory has gone back to it

    thread = threading.Thread(target=populate, name="profiler-memory", daemon=True)
    thread.start()
    return thread


_PR_SET_THP_DISABLE = 41
"""From linux/prctl.h."""


def allow_huge_pages(allowed: bool) -> None:
    """Let the system back arrays with pages of 2 MB, as numpy asks it to for those of 4 MB and more (Linux).

    They save time where arrays are few. Where gigabytes are in use, it takes four times as long to make and clear
    them as pages of 4 KB.
    """
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "prctl"):
        libc.prctl(_PR_SET_THP_DISABLE, int(not allowed), 0, 0, 0)


@contextmanager
def growing_in_place() -> Iterator[None]:
    """Let large arrays grow without a copy inside the `with` block, in a process that keeps freed memory.

    A mapping of its own grows by moving page tables. An array among others is copied, and the memory that it
    leaves behind can't be used by a larger one: several arrays that grow together take twice their size.
    """
    if not _is_recycling:
        yield
        return
    libc = ctypes.CDLL(None)
    libc.mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
    try:
        yield
    finally:
        libc.mallopt(_M_MMAP_THRESHOLD, _RECYCLED_BYTES)


def resume_recycling() -> None:
    """Recycle memory again, before the next file is read, in a process that did so for the file before."""
    if _recycles:
        recycle_memory()


@contextmanager
def limited_memory(memory: int) -> Iterator[None]:
    """Limit the data of this process to `memory` bytes inside the `with` block; 0 sets no limit."""
    before = None if resource is None else resource.getrlimit(resource.RLIMIT_DATA)
    limit_memory(memory)
    try:
        yield
    finally:
        if before is not None:
            resource.setrlimit(resource.RLIMIT_DATA, before)
