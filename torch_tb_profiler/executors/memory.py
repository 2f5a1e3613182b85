"""How much memory a process may take, where the system knows such a limit, and what it gives back."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]


def limit_memory(memory: int) -> None:
    """This process may take so many bytes from now on, 0 for any number."""
    if memory and resource is not None:
        most = resource.getrlimit(resource.RLIMIT_DATA)[1]
        allowed = memory if most == resource.RLIM_INFINITY else min(memory, most)
        resource.setrlimit(resource.RLIMIT_DATA, (allowed, most))


def give_back_memory() -> None:
    """What was freed goes back to the system, where the C library otherwise keeps it (glibc)."""
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)


# malloc.h of glibc; the others have none of it.
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3
_MOST = (1 << 31) - 1


def recycle_memory() -> None:
    """What this process frees stays with it, for the next column, until `give_back_memory` (glibc).

    By default each large column is a mapping of its own, whose pages the system clears one by one and takes back
    with the column. Neither does numpy ask for huge pages, if it is imported after this: for them the system moves
    other pages out of the way.
    """
    os.environ.setdefault("NUMPY_MADVISE_HUGEPAGE", "0")
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):
        libc.mallopt(_M_MMAP_THRESHOLD, 1 << 30)
        libc.mallopt(_M_TRIM_THRESHOLD, _MOST)
        libc.mallopt(_M_TOP_PAD, 1 << 26)


@contextmanager
def limited_memory(memory: int) -> Iterator[None]:
    """Inside, this process may take so many bytes, 0 for any number."""
    before = None if resource is None else resource.getrlimit(resource.RLIMIT_DATA)
    limit_memory(memory)
    try:
        yield
    finally:
        if before is not None:
            resource.setrlimit(resource.RLIMIT_DATA, before)
