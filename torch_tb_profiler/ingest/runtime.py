"""What a reader shares with its caller: progress reports, a preview, and a paused garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from torch_tb_profiler.model.trace import Trace

Stage = Literal["reading", "arranging", "analyzing", "saving"]


class Progress(NamedTuple):
    """How far a file has been read, in stored bytes (compressed for a .gz); `bytes_total` is 0 if unknown."""

    stage: Stage
    bytes_done: int = 0
    bytes_total: int = 0
    events: int = 0


Report = Callable[[Progress], None]

ReportStep = Callable[[], None]
"""Called between parts of work that takes long on a large file; it may report that the work goes on."""


def ignore_step() -> None:
    """Do nothing: a ReportStep for callers that need no progress."""


def ignore_progress(progress: Progress) -> None:
    """Do nothing: a Report for callers that need no progress."""


_PREVIEW_RECEIVER: ContextVar[Callable[[Trace], object] | None] = ContextVar("preview_receiver", default=None)


@contextmanager
def receive_preview(receive: Callable[[Trace], object]) -> Iterator[None]:
    """Let what is read inside hand over a part of a large file that can be shown while the rest is read."""
    token = _PREVIEW_RECEIVER.set(receive)
    try:
        yield
    finally:
        _PREVIEW_RECEIVER.reset(token)


def preview_receiver() -> Callable[[Trace], object] | None:
    """Return what takes a preview, or None if nobody wants one."""
    return _PREVIEW_RECEIVER.get()


@contextmanager
def without_gc() -> Iterator[None]:
    """Pause the garbage collector: it would only walk over millions of short-lived structs without cycles."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
