"""Parameters that several parts of the Trace tab share."""

from __future__ import annotations

from typing import Annotated

import msgspec

from torch_tb_profiler.analyses.timeline.counters import all_series, counter_id
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.views._shared.lists import parse_numbers

MAX_WIDTH = 8192

Time = Annotated[int, msgspec.Meta(gt=-(2**62), lt=2**62)]
"""ns since the trace's start, within what int64 holds without overflow."""

Width = Annotated[int, msgspec.Meta(ge=1, le=MAX_WIDTH)]
"""Buckets that a window is divided into, at least."""


class EventParams(msgspec.Struct, frozen=True):
    """`event`: row number in the trace; `python`: whether Python frames are unfolded."""

    event: int
    python: bool = False


def check_order(begin: int, end: int) -> None:
    """ValueError unless [begin, end) holds any time."""
    if begin >= end:
        raise ValueError(f"[{begin}, {end}) is not a window: begin must be less than end")


def track_ids(trace: Trace, text: str) -> list[int]:
    """Track ids of a parameter ("3,4,7"; empty: all of slices and counters)."""
    return parse_numbers("tracks", text) or list(range(counter_id(trace, len(all_series(trace)))))
