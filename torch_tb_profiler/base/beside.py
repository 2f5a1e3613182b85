"""Work beside other work, on threads that a session lends to what is pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import TypeVar

T = TypeVar("T")

_THREADS: ContextVar[Executor | None] = ContextVar("threads_beside", default=None)


@contextmanager
def work_beside(threads: Executor | None) -> Iterator[None]:
    """Let `start_beside` use these threads inside the `with` block; without any, everything runs in turn."""
    token = _THREADS.set(threads)
    try:
        yield
    finally:
        _THREADS.reset(token)


def start_beside(function: Callable[[], T]) -> Callable[[], T]:
    """Start a function on another thread, and return what waits for its result (or raises its exception).

    For loops over long columns, during which numpy and functions in C hold no lock. Without another thread the
    function runs once its result is asked for.
    """
    threads = _THREADS.get()
    if threads is None:
        return function
    return threads.submit(copy_context().run, function).result
