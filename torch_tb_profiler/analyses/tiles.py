"""Level of detail: what a screen can show of the lanes in a window, merged below a pixel.

    lane        [a][b]  [c]   [----- d -----] [e]        resolution r (ns per pixel column)
    bucket    |       |       |       |       |
    boxes       [a b]   [c]   [----- d -----] [e]        a and b: one box, count 2, busy = a + b

A slice that lasts r or longer is a box of its own. Consecutive shorter ones that begin in the same bucket
(start // r) share a box, which reaches from the first start to the last end, knows how many they are and how
long they are busy, and shows the longest. No slice is ever left out: the counts of the boxes sum to the slices.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from torch_tb_profiler.analyses.lanes import Lanes, lanes_of
from torch_tb_profiler.model.trace import Int32, Int64, Trace


@dataclass(frozen=True)
class Boxes:
    """Boxes by lane, within a lane by start; they do not overlap.

    start, end  int64[k]  ns
    busy        int64[k]  ns covered by the slices of the box
    count       int64[k]  slices in the box
    row         int32[k]  row of the longest of them (the first if several are)
    bounds      int64[l+1]
    """

    start: Int64
    end: Int64
    busy: Int64
    count: Int64
    row: Int32
    bounds: Int64


def resolution(begin: int, end: int, width: int) -> int:
    """ns per bucket: the largest power of two that gives at least `width` buckets; at least 1."""
    return 1 << max(0, ((end - begin) // max(width, 1)).bit_length() - 1)


def single(lanes: Lanes) -> Boxes:
    """Every slice as a box of its own."""
    lasting = lanes.end - lanes.start
    return Boxes(lanes.start, lanes.end, lasting, np.ones(len(lasting), np.int64), lanes.rows, lanes.bounds)


def clip(boxes: Boxes, which: Int64, begin: int, end: int) -> Boxes:
    """The boxes of these lanes that touch [begin, end)."""
    parts = []
    for lane in which.tolist():
        low, high = boxes.bounds[lane], boxes.bounds[lane + 1]
        # Ends ascend as starts do, because nothing overlaps. Empty slices at `begin` count.
        first = low + np.searchsorted(boxes.end[low:high], begin, "left")
        last = low + np.searchsorted(boxes.start[low:high], end, "left")
        parts.append(np.arange(first, max(first, last)))
    at = np.concatenate(parts) if parts else np.empty(0, np.int64)
    bounds = np.concatenate(([0], np.cumsum([len(part) for part in parts], dtype=np.int64)))
    return Boxes(boxes.start[at], boxes.end[at], boxes.busy[at], boxes.count[at], boxes.row[at], bounds)


def merge(boxes: Boxes, resolution: int, longest: Int64) -> Boxes:
    """Boxes at a coarser resolution (a power of two, a multiple of what they were merged at).

    longest  int64[k]: the duration of each box's longest slice
    """
    if len(boxes.start) == 0:
        return boxes
    first = _first_of_group(boxes, resolution, longest)
    begin = np.flatnonzero(first)
    last = np.append(begin[1:], len(first)) - 1
    # Sorted by (group, longest slice first): the first of each group is its longest.
    group = np.cumsum(first) - 1
    best = begin
    if len(begin) < len(first):
        order = np.lexsort((-longest, group))
        best = order[begin]
    return Boxes(
        boxes.start[begin],
        boxes.end[last],
        np.add.reduceat(boxes.busy, begin),
        np.add.reduceat(boxes.count, begin),
        boxes.row[best],
        np.searchsorted(begin, boxes.bounds),
    )


def _first_of_group(boxes: Boxes, resolution: int, longest: Int64) -> np.ndarray:
    """bool[k]: boxes that begin a group."""
    short = longest < resolution
    bucket = boxes.start // resolution
    first = np.ones(len(boxes.start), np.bool_)
    first[1:] = (bucket[1:] != bucket[:-1]) | ~short[1:] | ~short[:-1]
    begins = boxes.bounds[:-1]
    first[begins[begins < len(first)]] = True
    return first


def tile(trace: Trace, python: bool, which: Int64, begin: int, end: int, resolution: int) -> Boxes:
    """The boxes of some lanes in [begin, end) at a resolution."""
    found = clip(single(lanes_of(trace, python)), which, begin, end)
    return merge(found, resolution, found.end - found.start)
