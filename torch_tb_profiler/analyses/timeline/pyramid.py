"""Boxes of all lanes at several resolutions, so that a wide window reads few boxes per pixel.

They travel as columns, which another process maps instead of deriving them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import asdict

from torch_tb_profiler.analyses.timeline.boxes import Boxes, clip, group_begins, join, merge, single
from torch_tb_profiler.analyses.tracks.lanes import Lanes
from torch_tb_profiler.base.memo import derived, seed_derived
from torch_tb_profiler.model.trace import Int64, Trace

K = TypeVar("K", bound=Hashable)

Arrange = Callable[[Trace, K], Lanes]
"""What makes the lanes of a trace: `lanes`, with Python frames or without; those of an analysis."""

Columns = Mapping[str, npt.NDArray[Any]]

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


def to_columns(trace: Trace, arrange: Arrange[K], key: K) -> Columns:
    """Lanes, and the levels of their pyramid but the finest, which says the same as they do.

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


def from_columns(trace: Trace, columns: Columns, arrange: Arrange[K], kind: type[K]) -> K:
    """The lanes that `arrange` makes and their pyramid are those of these columns.

    Returns their key, of type `kind`. ValueError or KeyError if any is missing.
    """
    parts: dict[str, dict[str, Any]] = {}
    key = msgspec.json.decode(columns["key"].tobytes(), type=kind)
    for name, column in columns.items():
        part, _, field = name.rpartition(".")
        parts.setdefault(part, {})[field] = column
    del parts[""]
    lane = parts.pop("lane")
    layout = Lanes(**lane | {"root": lane["root"].view(np.bool_)})
    levels = [(int(part.partition(".")[2]), Boxes(**fields)) for part, fields in parts.items()]
    seed_derived(trace, arrange, key, value=layout)
    seed_derived(
        trace, pyramid, arrange, key, value=[(1, single(layout)), *sorted(levels, key=lambda level: level[0])]
    )
    return key
