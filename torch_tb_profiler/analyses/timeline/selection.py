"""What happens in a window: totals by name, how busy devices and threads are, what runs at the same time."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.tracks.lanes import Lanes, lanes_of
from torch_tb_profiler.analyses.tracks.places import nested_time
from torch_tb_profiler.base.intervals import Intervals, intersect, merge, total
from torch_tb_profiler.model.communication.events import communication_kernels
from torch_tb_profiler.model.devices import device_of, devices
from torch_tb_profiler.model.kinds import DEVICE, Kind, ends, kinds, of_kind
from torch_tb_profiler.model.trace import NO_CODE, Int32, Int64, Trace, derived


class Totals(msgspec.Struct, frozen=True):
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


def totals(trace: Trace, python: bool, which: Int64, begin: int, end: int) -> Totals:
    """Totals by name over some lanes (as positions) in [begin, end); `python`: of the lanes with Python frames."""
    laid = lanes_of(trace, python)
    alone = _self_times_with_python(trace) if python else _self_times(trace)
    sums = _Sums(trace)
    for lane in which.tolist():
        low, high = laid.bounds[lane : lane + 2].tolist()
        first = low + int(np.searchsorted(laid.end[low:high], begin, "left"))
        last = low + int(np.searchsorted(laid.start[low:high], end, "left"))
        while first < last and laid.end[first] <= begin and laid.start[first] < begin:
            first += 1  # what ends where the window begins is outside
        # Nothing overlaps in a lane, so only its first and last slice can reach over an edge.
        edges = {first, last - 1} if first < last else set()
        over = sorted(at for at in edges if laid.start[at] < begin or laid.end[at] > end)
        inner = slice(first + (first in over), last - (last - 1 in over and last - 1 > first))
        sums.add(laid.rows[inner], laid.end[inner] - laid.start[inner], alone[inner])
        start, finish = np.maximum(laid.start[over], begin), np.minimum(laid.end[over], end)
        sums.add(laid.rows[over], finish - start, finish - start - nested_time(laid, lane, start, finish))
    return sums.finish()


@derived
def _self_times(trace: Trace) -> Int64:
    return _alone(lanes_of(trace, False))


@derived
def _self_times_with_python(trace: Trace) -> Int64:
    return _alone(lanes_of(trace, True))


def _alone(laid: Lanes) -> Int64:
    """int64[k]: self time of every slice, in the order of the lanes."""
    alone = laid.end - laid.start
    for lane, (low, high) in enumerate(zip(laid.bounds[:-1].tolist(), laid.bounds[1:].tolist(), strict=True)):
        alone[low:high] -= nested_time(laid, lane, laid.start[low:high], laid.end[low:high])
    return alone


class _Sums:
    """Sums by name code, exact; the last cell is for slices without a name."""

    def __init__(self, trace: Trace) -> None:
        size = len(trace.strings) + 1
        self._trace = trace
        self._count, self._total, self._alone = (np.zeros(size, np.int64) for _ in range(3))
        self._least, self._most = np.full(size, np.iinfo(np.int64).max), np.full(size, -1)
        self._row = np.full(size, NO_CODE, np.int32)

    def add(self, rows: Int32, lasting: Int64, alone: Int64) -> None:
        name = self._trace.events.name[rows]
        np.add.at(self._count, name, 1)
        np.add.at(self._total, name, lasting)
        np.add.at(self._alone, name, alone)
        np.minimum.at(self._least, name, lasting)
        before = self._most.copy()
        np.maximum.at(self._most, name, lasting)
        longest = np.flatnonzero((lasting == self._most[name]) & (lasting > before[name]))[::-1]
        self._row[name[longest]] = rows[longest]  # of equals the first, which is written last

    def finish(self) -> Totals:
        found = np.flatnonzero(self._count)
        name = np.where(found == len(self._count) - 1, NO_CODE, found).astype(np.int32)
        return Totals(
            name,
            self._row[found],
            self._count[found],
            self._total[found],
            self._alone[found],
            self._least[found],
            self._most[found],
        )


class DeviceTime(msgspec.Struct, frozen=True):
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
