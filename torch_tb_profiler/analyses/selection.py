"""What happens in a window: totals by name, how busy devices and threads are, what runs at the same time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from torch_tb_profiler.analyses.lanes import Lanes
from torch_tb_profiler.analyses.places import nested_time
from torch_tb_profiler.intervals import Intervals, intersect, merge, total
from torch_tb_profiler.model.communication import communication_kernels
from torch_tb_profiler.model.devices import device_of, devices
from torch_tb_profiler.model.kinds import DEVICE, Kind, ends, kinds, of_kind
from torch_tb_profiler.model.trace import Int32, Int64, Trace


@dataclass(frozen=True)
class Totals:
    """Slices that touch the window, by name; every time is clipped to the window, ns.

    name     int32[k]  codes
    row      int32[k]  the longest slice of the name inside the window
    count, total, self_time, least, most  int64[k]; `self_time` is covered by no nested slice
    """

    name: Int32
    row: Int32
    count: Int64
    total: Int64
    self_time: Int64
    least: Int64
    most: Int64


def totals(trace: Trace, laid: Lanes, which: Int64, begin: int, end: int) -> Totals:
    """Totals by name over some lanes in [begin, end)."""
    rows, lasting, alone = [], [], []
    for lane in which.tolist():
        low, high = laid.bounds[lane], laid.bounds[lane + 1]
        first = low + np.searchsorted(laid.end[low:high], begin, "left")
        last = low + np.searchsorted(laid.start[low:high], end, "left")
        start, finish = laid.start[first:last], laid.end[first:last]
        touching = (finish > begin) | (start >= begin)  # what ends where the window begins is outside
        start, finish = np.maximum(start[touching], begin), np.minimum(finish[touching], end)
        rows.append(laid.rows[first:last][touching])
        lasting.append(finish - start)
        alone.append(finish - start - nested_time(laid, lane, start, finish))
    return _by_name(
        trace,
        np.concatenate([np.empty(0, np.int32), *rows]),
        np.concatenate([np.empty(0, np.int64), *lasting]),
        np.concatenate([np.empty(0, np.int64), *alone]),
    )


def _by_name(trace: Trace, rows: Int32, lasting: Int64, alone: Int64) -> Totals:
    # Within a name the longest comes first.
    name = trace.events.name[rows]
    order = np.lexsort((-lasting, name))
    rows, name, lasting, alone = rows[order], name[order], lasting[order], alone[order]
    first = np.flatnonzero(np.append(True, name[1:] != name[:-1])[: len(name)])
    if len(first) == 0:
        none = np.empty(0, np.int64)
        return Totals(name, rows, none, none, none, none, none)
    last = np.append(first[1:], len(name)) - 1
    return Totals(
        name[first],
        rows[first],
        last - first + 1,
        np.add.reduceat(lasting, first),
        np.add.reduceat(alone, first),
        lasting[last],
        lasting[first],
    )


@dataclass(frozen=True)
class DeviceTime:
    """One device in a window, ns. busy + idle = the window; busy = union of all work.

    `compute` are kernels that are no communication; `overlap` is when both run.
    """

    device: int
    busy: int
    idle: int
    compute: int
    communication: int
    overlap: int
    copy: int


def device_times(trace: Trace, begin: int, end: int) -> list[DeviceTime]:
    """Every device in [begin, end)."""
    rows = of_kind(trace, *DEVICE)
    rows = rows[(trace.events.start[rows] < end) & (ends(trace)[rows] > begin)]
    owner, kernel = device_of(trace)[rows], kinds(trace)[rows] == Kind.KERNEL
    talking = communication_kernels(trace)[rows]

    def union(which: np.ndarray) -> Intervals:
        chosen = rows[which]
        return merge(np.maximum(trace.events.start[chosen], begin), np.minimum(ends(trace)[chosen], end))

    found = []
    for info in devices(trace):
        mine = owner == info.id
        compute, communication = union(mine & kernel & ~talking), union(mine & kernel & talking)
        busy = total(union(mine))
        found.append(
            DeviceTime(
                device=info.id,
                busy=busy,
                idle=end - begin - busy,
                compute=total(compute),
                communication=total(communication),
                overlap=total(intersect(compute, communication)),
                copy=total(union(mine & ~kernel)),
            )
        )
    return found


def busy_of_tracks(laid: Lanes, which: Int64, begin: int, end: int) -> dict[int, int]:
    """Track -> ns of [begin, end) that its slices cover."""
    found: dict[int, list[tuple[Int64, Int64]]] = {}
    for lane in which.tolist():
        if laid.root[lane]:  # what is nested covers nothing more
            low, high = laid.bounds[lane], laid.bounds[lane + 1]
            found.setdefault(int(laid.track[lane]), []).append((laid.start[low:high], laid.end[low:high]))
    return {
        track: total(
            merge(
                np.maximum(np.concatenate([start for start, _ in parts]), begin),
                np.minimum(np.concatenate([finish for _, finish in parts]), end),
            )
        )
        for track, parts in found.items()
    }
