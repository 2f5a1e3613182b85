"""How far a file is read: reported by the reader, shown by the surfaces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Stage = Literal["reading", "arranging", "analyzing", "saving"]


@dataclass(frozen=True, slots=True)
class Progress:
    """`bytes_done` of `bytes_total` stored bytes (compressed size of a .gz; 0 if unknown)."""

    stage: Stage
    bytes_done: int = 0
    bytes_total: int = 0
    events: int = 0


Report = Callable[[Progress], None]

Step = Callable[[], None]
"""Called between parts of work that takes a while of a large file; it may report that the work goes on."""


def no_step() -> None:
    """A Step for callers that do not care."""


def ignore(progress: Progress) -> None:
    """A Report for callers that do not care."""
