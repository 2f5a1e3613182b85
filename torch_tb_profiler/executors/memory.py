"""How much memory a process may take, where the system knows such a limit, and what it gives back."""

from __future__ import annotations

import ctypes
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
