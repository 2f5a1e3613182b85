"""The state of a file as users see it, and waiting until a file is ready."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeVar

import msgspec

from torch_tb_profiler.base.errors import ProfilerError

T = TypeVar("T")

StateName = Literal["waiting", "loading", "ready", "failed"]

POLL_SECONDS = 0.5
"""Longest wait of one request before its state is checked: terminals show progress, and Ctrl-C must work."""


class ErrorInfo(msgspec.Struct, frozen=True):
    """An error, where it occurred, and what to do about it; `stage` is the stage of loading that failed."""

    code: str
    message: str
    where: str | None = None
    hint: str | None = None
    stage: str | None = None

    def exception(self) -> ProfilerError:
        """Return the error as an exception, for callers that show no states."""
        return ProfilerError(self.message, where=self.where, hint=self.hint)

    @classmethod
    def of(cls, error: BaseException, *, where: str | None = None, stage: str | None = None) -> ErrorInfo:
        if isinstance(error, ProfilerError):
            place = ", ".join(part for part in (where, error.where) if part) or None
            return cls(error.code, error.message, place, error.hint, stage)
        name = type(error).__name__
        return cls("internal", f"{name}: {error}", where, "this is a bug; please report it", stage)


class ProgressInfo(msgspec.Struct, frozen=True):
    """The progress of loading; `bytes_total` is 0 if unknown."""

    stage: str
    bytes_done: int
    bytes_total: int
    events: int


class HealthCounts(msgspec.Struct, frozen=True):
    """How many kinds of findings, by severity."""

    error: int
    warning: int
    info: int


class FileState(msgspec.Struct, frozen=True):
    """The state of a file: waiting (not requested yet, or still being written), loading, ready, or failed."""

    state: StateName
    progress: ProgressInfo | None = None
    error: ErrorInfo | None = None
    health: HealthCounts | None = None
    events: int | None = None


def wait_for_answer(
    request: Callable[[], tuple[FileState, T | None]], show: Callable[[FileState], None] = lambda _: None
) -> T:
    """Repeat a request until its file is ready, and return the answer; call `show` with each state before that.

    request  waits up to `POLL_SECONDS`

    Raises ProfilerError if the file failed.
    """
    while True:
        state, answer = request()
        if answer is not None:
            return answer
        if state.state not in ("waiting", "loading"):
            assert state.error is not None
            raise state.error.exception()
        show(state)
