"""Level of detail: what a screen can show of the lanes in a window, merged below a pixel.

    lane        [a][b]  [c]   [----- d -----] [e]        resolution r (ns per pixel column)
    bucket    |       |       |       |       |
    boxes       [a b]   [c]   [----- d -----] [e]        a and b: one box, count 2, busy = a + b

A slice that lasts r or longer has a box to itself. Consecutive shorter ones that start in the same bucket (start
// r) share a box from the first start to the last end. The box shows the longest of them and records how many they
are and how long they run. No slice is ever left out: the counts of the boxes sum to the slices.

A pyramid holds the boxes of all lanes at several resolutions, so that a wide window reads few boxes per pixel.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import asdict

from torch_tb_profiler.analyses.tracks.lanes import Lanes
from torch_tb_profiler.base.memo import derived, seed_derived
from torch_tb_profiler.base.threadsafe import threadsafe
from torch_tb_profiler.model.trace import Bool, Int32, Int64, Trace

T = TypeVar("T", bound=np.generic)
K = TypeVar("K", bound=Hashable)

_MAX_UNITS = 2**30
"""Largest number of units in an int32 column; anything farther away is outside the window anyway."""

MIN_BOXES_PER_LEVEL = 20_000
"""Fewest boxes in a level for which a coarser level is built; merging fewer on request takes less than 2 ms."""


class Grid(msgspec.Struct, frozen=True):
    """A window [begin, end) divided into buckets of time, one per pixel column or a few more.

    Buckets are `resolution` ns long, a power of two, and start at time 0, so that adjacent grids of equal
    resolution line up.
    """

    begin: int
    end: int
    resolution: int

    @classmethod
    def of(cls, begin: int, end: int, width: int) -> Grid:
        """Return the coarsest grid that has at least `width` buckets, of at least 1 ns each."""
        return cls(begin, end, 1 << max(0, ((end - begin) // max(width, 1)).bit_length() - 1))

    def coarser(self) -> Grid:
        """Return a grid with half as many buckets."""
        return Grid(self.begin, self.end, 2 * self.resolution)

    @property
    def unit(self) -> int:
        """Return the unit of packed times in ns: 1/256 of a bucket, but at least 1."""
        return max(1, self.resolution >> 8)

    def pack_times(self, times: Int64) -> bytes:
        """Return times as int32 in units from `begin`."""
        return self.pack_durations(times - self.begin)

    def pack_durations(self, durations: Int64) -> bytes:
        """Return durations as int32 in units."""
        return np.clip(durations // self.unit, -_MAX_UNITS, _MAX_UNITS).astype("<i4").tobytes()


class Boxes(msgspec.Struct, frozen=True):
    """Boxes by lane, within a lane by start. They don't overlap.

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


def unmerged_boxes(layout: Lanes) -> Boxes:
    """Return every slice as a box of its own."""
    duration = layout.end - layout.start
    ones = np.broadcast_to(np.int64(1), len(duration))
    return Boxes(layout.start, layout.end, duration, duration, ones, layout.rows, layout.bounds)


def clip_boxes(boxes: Boxes, lanes: Int64, begin: int, end: int) -> Boxes:
    """Return the boxes of these lanes that touch [begin, end)."""
    spans = []
    for lane in lanes.tolist():
        low, high = boxes.bounds[lane : lane + 2].tolist()
        # Ends ascend as starts do, because nothing overlaps. Empty slices at `begin` count.
        first = low + int(np.searchsorted(boxes.end[low:high], begin, "left"))
        last = low + int(np.searchsorted(boxes.start[low:high], end, "left"))
        spans.append(slice(first, max(first, last)))
    sizes = [0, *(span.stop - span.start for span in spans)]

    def select(column: npt.NDArray[T]) -> npt.NDArray[T]:
        return np.concatenate([column[:0], *(column[span] for span in spans)])

    return Boxes(
        select(boxes.start),
        select(boxes.end),
        select(boxes.busy),
        select(boxes.longest),
        select(boxes.count),
        select(boxes.row),
        np.cumsum(sizes),
    )


def select_boxes(boxes: Boxes, mask: Bool) -> Boxes:
    """Return the boxes of a mask."""
    selected_before = np.concatenate([[0], np.cumsum(mask)])
    return Boxes(
        boxes.start[mask],
        boxes.end[mask],
        boxes.busy[mask],
        boxes.longest[mask],
        boxes.count[mask],
        boxes.row[mask],
        selected_before[boxes.bounds],
    )


def join_lanes(first: Boxes, second: Boxes) -> Boxes:
    """Return the lanes of both, those of `second` last."""
    return Boxes(
        np.append(first.start, second.start),
        np.append(first.end, second.end),
        np.append(first.busy, second.busy),
        np.append(first.longest, second.longest),
        np.append(first.count, second.count),
        np.append(first.row, second.row),
        np.append(first.bounds, second.bounds[1:] + len(first.row)),
    )


def merge_boxes(boxes: Boxes, resolution: int) -> Boxes:
    """Merge boxes to a resolution that is a multiple of theirs."""
    return _join_groups(boxes, _group_starts(boxes, resolution)) if len(boxes.row) else boxes


def _group_starts(boxes: Boxes, resolution: int) -> Int64:
    """Return int64[k], the first positions of the groups that share a box at this resolution."""
    first = np.ones(len(boxes.row), np.bool_)
    bucket = boxes.start // resolution
    np.not_equal(bucket[1:], bucket[:-1], out=first[1:])
    # A long slice has a box to itself, so a group starts with it and after it.
    long = boxes.longest >= resolution
    first |= long
    first[1:] |= long[:-1]
    lane_starts = boxes.bounds[:-1]
    first[lane_starts[lane_starts < len(first)]] = True
    return np.flatnonzero(first)


def _join_groups(boxes: Boxes, starts: Int64) -> Boxes:
    """Merge each group, which starts at one of the positions `starts`, into one box."""
    if len(starts) == len(boxes.row):
        return boxes
    sizes = np.diff(starts, append=len(boxes.row))
    longest = np.maximum.reduceat(boxes.longest, starts)
    best = np.flatnonzero(boxes.longest == np.repeat(longest, sizes))
    # The first of each group that is as long as its longest.
    best = best[np.searchsorted(best, starts)]
    return Boxes(
        boxes.start[starts],
        boxes.end[starts + sizes - 1],
        np.add.reduceat(boxes.busy, starts),
        longest,
        np.add.reduceat(boxes.count, starts),
        boxes.row[best],
        np.searchsorted(starts, boxes.bounds),
    )


Arrange = Callable[[Trace, K], Lanes]
"""A function that arranges a trace in lanes: `lanes` with or without Python frames, or that of an analysis."""

ArrayColumns = Mapping[str, npt.NDArray[Any]]
"""Arrays by name, as the cache stores them."""

Pyramid = list[tuple[int, Boxes]]
"""Boxes of all lanes by resolution, finest (1 ns: every slice alone) first."""


@derived
def pyramid(trace: Trace, arrange: Arrange[K], key: K) -> Pyramid:
    """Compute the levels of the lanes that `arrange` returns, each with at most half the boxes of the one before.

    So all coarser levels together are no larger than the finest.
    """
    layout = arrange(trace, key)
    levels = [(1, unmerged_boxes(layout))]
    length = int(layout.end.max(initial=0) - layout.start.min(initial=0))
    for exponent in range(10, max(length, 1).bit_length(), 2):
        boxes = levels[-1][1]
        if len(boxes.row) < MIN_BOXES_PER_LEVEL:
            break
        starts = _group_starts(boxes, 1 << exponent)
        if 2 * len(starts) <= len(boxes.row):
            levels.append((1 << exponent, _join_groups(boxes, starts)))
    return levels


def boxes_in(levels: Pyramid, lanes: Int64, begin: int, end: int, resolution: int) -> Boxes:
    """Return the boxes of some lanes (by index) that touch [begin, end), at a resolution (a power of two)."""
    for finest, boxes in reversed(levels):
        if finest <= resolution:
            return merge_boxes(clip_boxes(boxes, lanes, begin, end), resolution)
    raise AssertionError("the finest level holds every slice")


def pyramid_columns(trace: Trace, arrange: Arrange[K], key: K) -> ArrayColumns:
    """Return the lanes and the levels of their pyramid as arrays, without the finest, which repeats the lanes.

    `lane.<field>` of Lanes, `level.<resolution>.<field>` of Boxes; a bool travels as uint8.
    `key`: as JSON, in bytes.
    """
    layout, (_, *levels) = arrange(trace, key), pyramid(trace, arrange, key)
    columns = {f"lane.{name}": column for name, column in asdict(layout).items()}
    columns["lane.root"] = layout.root.view(np.uint8)
    columns["key"] = np.frombuffer(msgspec.json.encode(key), np.uint8)
    for resolution, boxes in levels:
        columns |= {f"level.{resolution}.{name}": column for name, column in asdict(boxes).items()}
    return columns


def restore_pyramid(trace: Trace, columns: ArrayColumns, arrange: Arrange[K], kind: type[K]) -> K:
    """Use these arrays as the lanes that `arrange` returns and as their pyramid.

    Return their key, of type `kind`. Raise ValueError or KeyError if any array is missing.
    """
    parts: dict[str, dict[str, Any]] = {}
    key = msgspec.json.decode(columns["key"].tobytes(), type=threadsafe(kind))
    for name, column in columns.items():
        part, _, field = name.rpartition(".")
        parts.setdefault(part, {})[field] = column
    del parts[""]
    lane = parts.pop("lane")
    layout = Lanes(**lane | {"root": lane["root"].view(np.bool_)})
    levels = [(int(part.partition(".")[2]), Boxes(**fields)) for part, fields in parts.items()]
    seed_derived(trace, arrange, key, value=layout)
    seed_derived(
        trace,
        pyramid,
        arrange,
        key,
        value=[(1, unmerged_boxes(layout)), *sorted(levels, key=lambda level: level[0])],
    )
    return key
