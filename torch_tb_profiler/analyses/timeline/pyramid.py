"""Boxes of all lanes at several resolutions, so that a wide window reads few boxes per pixel."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

from torch_tb_profiler.analyses.timeline.boxes import Boxes, clip, group_begins, join, merge, single
from torch_tb_profiler.analyses.tracks.lanes import Lanes
from torch_tb_profiler.model.trace import Int64, Trace, derived

K = TypeVar("K", bound=Hashable)

Arrange = Callable[[Trace, K], Lanes]
"""What makes the lanes of a trace: `lanes`, with Python frames or without; those of an analysis."""

SMALL = 20_000
"""Boxes that need no coarser level: merging them takes less than a millisecond or two."""

Pyramid = list[tuple[int, Boxes]]
"""Boxes of all lanes by resolution, finest (1 ns: every slice alone) first."""


@derived
def pyramid(trace: Trace, arrange: Arrange[K], key: K) -> Pyramid:
    """Levels of the lanes that `arrange` makes, each with at most half the boxes of the one before.

    So all levels together are no larger than the finest.
    """
    layout = arrange(trace, key)
    levels = [(1, single(layout))]
    length = int(layout.end.max(initial=0) - layout.start.min(initial=0))
    for exponent in range(10, max(length, 1).bit_length(), 2):
        boxes = levels[-1][1]
        if len(boxes.row) < SMALL:
            break
        begins = group_begins(boxes, 1 << exponent)
        if 2 * len(begins) <= len(boxes.row):
            levels.append((1 << exponent, join(boxes, begins)))
    return levels


def boxes_in(levels: Pyramid, lanes: Int64, begin: int, end: int, resolution: int) -> Boxes:
    """The boxes of some lanes (by index) that touch [begin, end), at a resolution (a power of two)."""
    for finest, boxes in reversed(levels):
        if finest <= resolution:
            return merge(clip(boxes, lanes, begin, end), resolution)
    raise AssertionError("the finest level holds every slice")
