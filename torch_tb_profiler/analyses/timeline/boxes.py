"""Level of detail: what a screen can show of the lanes in a window, merged below a pixel.

    lane        [a][b]  [c]   [----- d -----] [e]        resolution r (ns per pixel column)
    bucket    |       |       |       |       |
    boxes       [a b]   [c]   [----- d -----] [e]        a and b: one box, count 2, busy = a + b

A slice that lasts r or longer is a box of its own. Consecutive shorter ones that begin in the same bucket
(start // r) share a box from the first start to the last end. It counts them and their busy time, and shows
the longest. No slice is ever left out: the counts of the boxes sum to the slices.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from torch_tb_profiler.analyses.tracks.lanes import Lanes
from torch_tb_profiler.model.trace import Int32, Int64

T = TypeVar("T", bound=np.generic)


class Boxes(msgspec.Struct, frozen=True):
    """Boxes by lane, within a lane by start; they do not overlap.

    start, end  int64[k]    ns
    busy        int64[k]    ns covered by the slices of the box
    longest     int64[k]    duration of the longest of them, ns
    count       int64[k]    slices in the box
    row         int32[k]    row of the longest (the first if several are)
    bounds      int64[l+1]  lane i holds the positions bounds[i]..bounds[i+1]
    """

    start: Int64
    end: Int64
    busy: Int64
    longest: Int64
    count: Int64
    row: Int32
    bounds: Int64


def single(layout: Lanes) -> Boxes:
    """Every slice as a box of its own."""
    duration = layout.end - layout.start
    ones = np.broadcast_to(np.int64(1), len(duration))
    return Boxes(layout.start, layout.end, duration, duration, ones, layout.rows, layout.bounds)


def clip(boxes: Boxes, lanes: Int64, begin: int, end: int) -> Boxes:
    """The boxes of these lanes that touch [begin, end)."""
    spans = []
    for lane in lanes.tolist():
        low, high = boxes.bounds[lane : lane + 2].tolist()
        # Ends ascend as starts do, because nothing overlaps. Empty slices at `begin` count.
        first = low + int(np.searchsorted(boxes.end[low:high], begin, "left"))
        last = low + int(np.searchsorted(boxes.start[low:high], end, "left"))
        spans.append(slice(first, max(first, last)))
    sizes = [0, *(span.stop - span.start for span in spans)]

    def cut(column: npt.NDArray[T]) -> npt.NDArray[T]:
        return np.concatenate([column[:0], *(column[span] for span in spans)])

    return Boxes(
        cut(boxes.start),
        cut(boxes.end),
        cut(boxes.busy),
        cut(boxes.longest),
        cut(boxes.count),
        cut(boxes.row),
        np.cumsum(sizes),
    )


def merge(boxes: Boxes, resolution: int) -> Boxes:
    """Boxes at a resolution that is a multiple of theirs."""
    return join(boxes, group_begins(boxes, resolution)) if len(boxes.row) else boxes


def group_begins(boxes: Boxes, resolution: int) -> Int64:
    """int64[k]: where the groups begin that share a box at this resolution."""
    first = np.ones(len(boxes.row), np.bool_)
    bucket = boxes.start // resolution
    np.not_equal(bucket[1:], bucket[:-1], out=first[1:])
    # A long slice begins a group, and so does what follows it.
    long = boxes.longest >= resolution
    first |= long
    first[1:] |= long[:-1]
    starts = boxes.bounds[:-1]
    first[starts[starts < len(first)]] = True
    return np.flatnonzero(first)


def join(boxes: Boxes, begins: Int64) -> Boxes:
    """One box per group, which begins where it says."""
    if len(begins) == len(boxes.row):
        return boxes
    sizes = np.diff(begins, append=len(boxes.row))
    longest = np.maximum.reduceat(boxes.longest, begins)
    best = np.flatnonzero(boxes.longest == np.repeat(longest, sizes))
    # The first of each group that is as long as its longest.
    best = best[np.searchsorted(best, begins)]
    return Boxes(
        boxes.start[begins],
        boxes.end[begins + sizes - 1],
        np.add.reduceat(boxes.busy, begins),
        longest,
        np.add.reduceat(boxes.count, begins),
        boxes.row[best],
        np.searchsorted(begins, boxes.bounds),
    )
