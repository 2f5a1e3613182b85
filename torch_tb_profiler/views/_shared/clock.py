"""That the clock of a device was moved, in words."""

from __future__ import annotations

from torch_tb_profiler.base.format import format_duration
from torch_tb_profiler.views._shared.text import Text, text


def clock_moved(shift_ns: int) -> Text:
    """By how much, and why; nothing where it was not."""
    if shift_ns <= 0:
        return ()
    return text(
        "The device's clock is moved by {shift}: work was recorded before its launch.",
        shift=format_duration(shift_ns),
    )
