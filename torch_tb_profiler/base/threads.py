"""Threads that a session lends to pure code, which starts none itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import TypeVar

T = TypeVar("T")

_LENT_THREADS: ContextVar[Executor | None] = ContextVar("lent_threads", default=None)


@contextmanager
def lend_threads(threads: Executor | None) -> Iterator[None]:
    """Let code inside the `with` block use these threads; with None, everything there runs in turn."""
    token = _LENT_THREADS.set(threads)
    try:
        yield
    finally:
        _LENT_THREADS.reset(token)


def borrowed_threads() -> Executor | None:
    """Return the threads that the caller lent, or None."""
    return _LENT_THREADS.get()


def start_in_thread(function: Callable[[], T]) -> Callable[[], T]:
    """Start a function on a borrowed thread, and return what waits for its result (or raises its exception).

    For loops over long columns, during which numpy and functions in C hold no lock. Without a thread the function
    runs once its result is asked for.
    """
    threads = borrowed_threads()
    if threads is None:
        return function
    return threads.submit(copy_context().run, function).result
