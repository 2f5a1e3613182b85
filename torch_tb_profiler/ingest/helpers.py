"""Threads that importers may use: whoever composes lends them, importers start none."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from contextvars import ContextVar

_LENT: ContextVar[Executor | None] = ContextVar("helpers", default=None)


@contextmanager
def lent(threads: Executor | None) -> Iterator[None]:
    """What is read inside may use these threads."""
    token = _LENT.set(threads)
    try:
        yield
    finally:
        _LENT.reset(token)


def helpers() -> Executor | None:
    """The threads that may be used, None if there are none."""
    return _LENT.get()
