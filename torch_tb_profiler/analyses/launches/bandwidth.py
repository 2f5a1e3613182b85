"""Copies by direction and host memory, and the bytes they move over time.

Memcpy HtoD (Pageable -> Device)    host to device, pageable
CopyDeviceToHost                    device to host, kind of memory unknown
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.grouping import group
from torch_tb_profiler.analyses.tracks.sources import name_of
from torch_tb_profiler.base.intervals import total
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.model.devices import copy_directions, moved_bytes
from torch_tb_profiler.model.kinds import Kind, event_intervals, event_kinds, event_spans
from torch_tb_profiler.model.trace import Int32, Int64, Trace

Direction = Literal["host to device", "device to host", "device to device", "device to peer", "unknown"]
HostMemory = Literal["pageable", "pinned"]

# Kineto writes CUDA's and HIP's copies as HtoD, XPU's as M2D (memory to device); the HIP runtime
# and the arguments of MTIA spell them out.
_DIRECTIONS: tuple[tuple[re.Pattern[str], Direction], ...] = (
    (lazy_regex(r"\bHtoD\b|\bM2D\b|Host_?To_?Device|HtoDAsync", re.IGNORECASE), "host to device"),
    (lazy_regex(r"\bDtoH\b|\bD2M\b|Device_?To_?Host|DtoHAsync", re.IGNORECASE), "device to host"),
    (lazy_regex(r"\bPtoP\b|\bP2P\b|PeerToPeer", re.IGNORECASE), "device to peer"),
    (lazy_regex(r"\bDtoD\b|\bD2D\b|Device_?To_?Device", re.IGNORECASE), "device to device"),
)


class CopyGroup(msgspec.Struct, frozen=True):
    """Copies of one direction and kind of host memory.

    memory   None if the name doesn't say, or no host memory takes part
    rows     int32[k]  in file order
    bytes    moved by the copies whose size is recorded; None if no size is
    sized    number of copies whose size is recorded
    time_ns  union of the copies whose size is recorded
    """

    direction: Direction
    memory: HostMemory | None
    rows: Int32
    bytes: int | None
    sized: int
    time_ns: int

    @property
    def bandwidth(self) -> float | None:
        """Return bytes per second while at least one of the copies runs, or None if unknown."""
        return self.bytes / (self.time_ns / 1e9) if self.bytes is not None and self.time_ns > 0 else None


def parse_direction(name: str) -> tuple[Direction, HostMemory | None]:
    """Return the direction and host memory that the name of a copy states."""
    direction: Direction = next((matched for pattern, matched in _DIRECTIONS if pattern.search(name)), "unknown")
    text = name.lower()
    memory: HostMemory | None = "pageable" if "pageable" in text else "pinned" if "pinned" in text else None
    return direction, memory


def copy_groups(trace: Trace, work: Int32) -> list[CopyGroup]:
    """Group the copies among some device work by direction and host memory, largest time first."""
    rows = work[event_kinds(trace)[work] == Kind.MEMCPY]
    name, (recorded, texts) = trace.events.name[rows], copy_directions(trace, rows)
    distinct = group(name, recorded)
    groups_of_key: dict[tuple[Direction, HostMemory | None], list[int]] = {}
    for number, first in enumerate(distinct.first.tolist()):
        recorded_text = texts[recorded[first]] if recorded[first] >= 0 else ""
        groups_of_key.setdefault(
            parse_direction(f"{name_of(trace, int(rows[first]))} {recorded_text}"), []
        ).append(number)
    groups = []
    for (direction, memory), numbers in sorted(groups_of_key.items(), key=str):
        mine = rows[np.isin(distinct.which, numbers)]
        size = moved_bytes(trace, mine)
        sized = mine[size >= 0]
        moved = int(size[size >= 0].sum()) if len(sized) else None
        busy = total(event_intervals(trace, sized))
        groups.append(CopyGroup(direction, memory, mine, moved, len(sized), busy))
    return sorted(groups, key=lambda each: -each.time_ns)


def bytes_between(trace: Trace, rows: Int32, edges: Int64) -> Int64:
    """Return the bytes that copies move in each of the k buckets between k + 1 ascending times: int64[k].

    A copy is assumed to move its bytes evenly. The bytes moved by an edge are rounded to an integer, 0 before the
    start and all bytes from the end on, so that buckets that cover a copy sum to its bytes exactly.
    """
    size = moved_bytes(trace, rows)
    rows, size = rows[size >= 0], size[size >= 0]
    start, finish = event_spans(trace, rows)
    lasting = finish > start
    # A copy of zero duration moves everything at once.
    instant = np.searchsorted(edges, start[~lasting], "right") - 1
    within = (instant >= 0) & (instant < len(edges) - 1)
    moved = np.zeros(len(edges), np.int64)
    np.add.at(moved, instant[within], size[~lasting][within])
    start, finish, size = start[lasting], finish[lasting], size[lasting]
    low = np.searchsorted(edges, start, "right") - 1
    high = np.searchsorted(edges, finish, "left")
    # Each copy touches the buckets low .. high - 1.
    counts = np.maximum(np.minimum(high, len(edges) - 1) - np.maximum(low, 0), 0)
    copy = np.repeat(np.arange(len(counts)), counts)
    bucket = np.arange(len(copy)) - np.repeat(np.cumsum(counts) - counts, counts) + np.maximum(low, 0)[copy]
    part = _bytes_moved_before(edges[bucket + 1], start[copy], finish[copy], size[copy])
    part -= _bytes_moved_before(edges[bucket], start[copy], finish[copy], size[copy])
    np.add.at(moved, bucket, part)
    return moved[:-1]


def _bytes_moved_before(time: Int64, start: Int64, finish: Int64, size: Int64) -> Int64:
    """Return the bytes that each copy has moved by a time."""
    share = np.clip(time - start, 0, finish - start) / (finish - start)
    moved = np.floor(size * share).astype(np.int64)
    return np.where(time >= finish, size, np.minimum(moved, size))


def time_bucket_edges(times: Sequence[Int64], max_buckets: int) -> Int64:
    """Return the edges of buckets of equal length from before the first of some times to after the last.

    int64[at most max_buckets + 1], whole ns; empty without times.
    """
    nonempty = [each for each in times if len(each)]
    if not nonempty:
        return np.empty(0, np.int64)
    low, high = min(int(each.min()) for each in nonempty), max(int(each.max()) for each in nonempty) + 1
    count = min(max_buckets, high - low)
    return low + np.arange(count + 1) * (high - low) // count
