"""How much memory a process may take, where the system knows such a limit."""

from __future__ import annotations

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
