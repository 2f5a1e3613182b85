"""Parameters that several parts of the Trace tab share."""

from __future__ import annotations

from math import ceil, floor
from typing import Annotated, NamedTuple

import msgspec

from torch_tb_profiler.analyses.timeline.counters import all_series, counter_id
from torch_tb_profiler.analyses.tracks.extent import extent
from torch_tb_profiler.analyses.tracks.opening import opening
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.views._shared.params import parse_numbers

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


TILE_BUCKETS = 1024
"""Buckets of the page's tiles, each of which begins at a multiple of its length."""

NARROWEST, WIDEST = 480, 2200
"""Pixels of the timeline on pages from 900 to 2560 wide."""

_AIR, _LEAST_AIR_NS = 0.02, 50


class Window(NamedTuple):
    """[begin, end) in ns since the trace's start."""

    begin: int
    end: int


def first_window(trace: Trace) -> Window:
    """What the page shows before anybody moves it: all slices, with a little air at both ends.

    The geometry here is the page's (fe/src/timeline: viewport.ts, tiles/store.ts).
    """
    begin, end, _ = opening(trace)
    air = max((end - begin) * _AIR, _LEAST_AIR_NS)
    return Window(floor(begin - air), ceil(end + air))


def first_tiles(trace: Trace) -> tuple[Window, ...]:
    """The tiles of that window: a bucket is a pixel's time rounded down to a power of two."""
    (left, right), (begin, end) = first_window(trace), _recording(trace)
    finest, coarsest = (max((right - left) // width, 1).bit_length() - 1 for width in (WIDEST, NARROWEST))
    tiles = []
    for length in (TILE_BUCKETS << level for level in range(finest, coarsest + 1)):
        seen = range(max(left, begin) // length, min(right, end) // length + 1)
        tiles += [Window(i * length, (i + 1) * length) for i in seen]
    return tuple(tiles)


def _recording(trace: Trace) -> Window:
    whole = extent(trace)
    return Window(whole.begin, max(whole.end, whole.begin + 1))
