"""Copies by direction and kind of host memory, and the bytes that they move over time.

Memcpy HtoD (Pageable -> Device)    host to device, pageable
CopyDeviceToHost                    device to host, kind of memory unknown
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.grouping import group
from torch_tb_profiler.analyses.tracks.sources import name_of
from torch_tb_profiler.base.intervals import merge, total
from torch_tb_profiler.model.copies import copy_directions, moved_bytes
from torch_tb_profiler.model.kinds import Kind, event_ends, event_kinds
from torch_tb_profiler.model.trace import Int32, Int64, Trace

Direction = Literal["host to device", "device to host", "device to device", "device to peer", "unknown"]
HostMemory = Literal["pageable", "pinned"]

# Kineto writes CUDA's and HIP's copies as HtoD, XPU's as M2D (memory to device); the HIP runtime
# and the arguments of MTIA spell them out.
_DIRECTIONS: tuple[tuple[re.Pattern[str], Direction], ...] = (
    (re.compile(r"\bHtoD\b|\bM2D\b|Host_?To_?Device|HtoDAsync", re.IGNORECASE), "host to device"),
    (re.compile(r"\bDtoH\b|\bD2M\b|Device_?To_?Host|DtoHAsync", re.IGNORECASE), "device to host"),
    (re.compile(r"\bPtoP\b|\bP2P\b|PeerToPeer", re.IGNORECASE), "device to peer"),
    (re.compile(r"\bDtoD\b|\bD2D\b|Device_?To_?Device", re.IGNORECASE), "device to device"),
)


class Copies(msgspec.Struct, frozen=True):
    """Copies of one direction and kind of host memory.

    memory  None where the name does not tell, and where no host memory takes part
    rows    int32[k]  in file order
    bytes   what the copies whose size is recorded move; None if none is
    sized   copies whose size is recorded
    time_ns union of the copies whose size is recorded: copies side by side share it
    """

    direction: Direction
    memory: HostMemory | None
    rows: Int32
    bytes: int | None
    sized: int
    time_ns: int

    @property
    def bandwidth(self) -> float | None:
        """Bytes per second while any of the copies runs; None where that is unknown."""
        return self.bytes / (self.time_ns / 1e9) if self.bytes is not None and self.time_ns > 0 else None


def direction_of(name: str) -> tuple[Direction, HostMemory | None]:
    """What the name of a copy says."""
    direction: Direction = next((way for pattern, way in _DIRECTIONS if pattern.search(name)), "unknown")
    text = name.lower()
    memory: HostMemory | None = "pageable" if "pageable" in text else "pinned" if "pinned" in text else None
    return direction, memory


def copies(trace: Trace, work: Int32) -> list[Copies]:
    """The copies among some device work, by direction and memory, the most time first."""
    rows = work[event_kinds(trace)[work] == Kind.MEMCPY]
    name, (written, texts) = trace.events.name[rows], copy_directions(trace, rows)
    kinds_of_copy = group(name, written)
    ways: dict[tuple[Direction, HostMemory | None], list[int]] = {}
    for number, first in enumerate(kinds_of_copy.first.tolist()):
        written_kind = texts[written[first]] if written[first] >= 0 else ""
        ways.setdefault(direction_of(f"{name_of(trace, int(rows[first]))} {written_kind}"), []).append(number)
    groups = []
    for (direction, memory), numbers in sorted(ways.items(), key=str):
        mine = rows[np.isin(kinds_of_copy.which, numbers)]
        size = moved_bytes(trace, mine)
        sized = mine[size >= 0]
        moved = int(size[size >= 0].sum()) if len(sized) else None
        busy = total(merge(trace.events.start[sized], event_ends(trace)[sized]))
        groups.append(Copies(direction, memory, mine, moved, len(sized), busy))
    return sorted(groups, key=lambda each: -each.time_ns)


def bytes_between(trace: Trace, rows: Int32, edges: Int64) -> Int64:
    """int64[k]: bytes that copies move in each of the k stretches between k + 1 ascending times.

    A copy moves its bytes evenly. What it has moved by an edge is a whole number, 0 before its start and all of it
    from its end on, so over stretches that cover a copy the parts sum to its bytes exactly.
    """
    size = moved_bytes(trace, rows)
    rows, size = rows[size >= 0], size[size >= 0]
    start, finish = trace.events.start[rows], event_ends(trace)[rows]
    lasting = finish > start
    # A copy of no length moves everything at once.
    instant = np.searchsorted(edges, start[~lasting], "right") - 1
    within = (instant >= 0) & (instant < len(edges) - 1)
    moved = np.zeros(len(edges), np.int64)
    np.add.at(moved, instant[within], size[~lasting][within])
    start, finish, size = start[lasting], finish[lasting], size[lasting]
    low = np.searchsorted(edges, start, "right") - 1
    high = np.searchsorted(edges, finish, "left")
    # Of each copy the stretches low .. high - 1 that it touches.
    counts = np.maximum(np.minimum(high, len(edges) - 1) - np.maximum(low, 0), 0)
    copy = np.repeat(np.arange(len(counts)), counts)
    stretch = np.arange(len(copy)) - np.repeat(np.cumsum(counts) - counts, counts) + np.maximum(low, 0)[copy]
    part = _moved_by(edges[stretch + 1], start[copy], finish[copy], size[copy])
    part -= _moved_by(edges[stretch], start[copy], finish[copy], size[copy])
    np.add.at(moved, stretch, part)
    return moved[:-1]


def _moved_by(time: Int64, start: Int64, finish: Int64, size: Int64) -> Int64:
    share = np.clip(time - start, 0, finish - start) / (finish - start)
    whole = np.floor(size * share).astype(np.int64)
    return np.where(time >= finish, size, np.minimum(whole, size))
