"""The state of a file as surfaces show it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch_tb_profiler.base.errors import ProfilerError

StateName = Literal["waiting", "loading", "ready", "failed"]


@dataclass(frozen=True)
class ErrorInfo:
    """What went wrong, where, and what to do about it; `stage` is what was being done."""

    code: str
    message: str
    where: str | None = None
    hint: str | None = None
    stage: str | None = None

    def exception(self) -> ProfilerError:
        """To be raised where nobody shows states."""
        return ProfilerError(self.message, where=self.where, hint=self.hint)

    @classmethod
    def of(cls, error: BaseException, *, where: str | None = None, stage: str | None = None) -> ErrorInfo:
        if isinstance(error, ProfilerError):
            place = ", ".join(part for part in (where, error.where) if part) or None
            return cls(error.code, error.message, place, error.hint, stage)
        name = type(error).__name__
        return cls("internal", f"{name}: {error}", where, "this is a bug; please report it", stage)


@dataclass(frozen=True)
class ProgressInfo:
    """How far the reading is; `bytes_total` is 0 where unknown."""

    stage: str
    bytes_done: int
    bytes_total: int
    events: int


@dataclass(frozen=True)
class HealthCounts:
    """How many kinds of findings, by severity."""

    error: int
    warning: int
    info: int


@dataclass(frozen=True)
class FileState:
    """waiting: nobody asked yet (or it is still being written); loading; ready; failed."""

    state: StateName
    progress: ProgressInfo | None = None
    error: ErrorInfo | None = None
    health: HealthCounts | None = None
    events: int | None = None
