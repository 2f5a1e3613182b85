"""What happens in a window: how busy devices and tracks are, totals by name and kernel family, and a summary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.tracks.extent import extent
from torch_tb_profiler.analyses.tracks.lanes import Lanes, lanes, nested_time
from torch_tb_profiler.analyses.tracks.tracks import tracks, work_tracks
from torch_tb_profiler.base.intervals import Intervals, intersect, merge, total
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.calls.missing import missing_kernels_reason
from torch_tb_profiler.model.communication.events import is_communication_kernel
from torch_tb_profiler.model.devices import device_ids, devices
from torch_tb_profiler.model.kernels.families import FAMILIES, family_codes
from torch_tb_profiler.model.kinds import DEVICE_KINDS, Kind, event_ends, event_kinds, rows_of_kind
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int32, Int64, Trace, distinct_codes


class DeviceUsage(msgspec.Struct, frozen=True):
    """How one device spends a window, in ns. busy + idle = the window; busy = union of all work.

    compute  kernels other than communication
    overlap  time in which communication and other kernels run together
    copy     memcpy and memset
    """

    device: int
    busy: int
    idle: int
    compute: int
    communication: int
    overlap: int
    copy: int


def device_usage(trace: Trace, begin: int, end: int) -> list[DeviceUsage]:
    """Return how each device spends [begin, end); empty if kernels are missing, as busy time is then unknown."""
    if missing_kernels_reason(trace) is not None:
        return []
    rows = rows_of_kind(trace, *DEVICE_KINDS)
    rows = rows[(trace.events.start[rows] < end) & (event_ends(trace)[rows] > begin)]
    owner, kernel = device_ids(trace)[rows], event_kinds(trace)[rows] == Kind.KERNEL
    communicates = is_communication_kernel(trace)[rows]

    def union(mask: Bool) -> Intervals:
        chosen = rows[mask]
        return merge(np.maximum(trace.events.start[chosen], begin), np.minimum(event_ends(trace)[chosen], end))

    usages = []
    for info in devices(trace):
        on_device = owner == info.id
        compute = union(on_device & kernel & ~communicates)
        communication = union(on_device & kernel & communicates)
        busy = total(union(on_device))
        usages.append(
            DeviceUsage(
                device=info.id,
                busy=busy,
                idle=end - begin - busy,
                compute=total(compute),
                communication=total(communication),
                overlap=total(intersect(compute, communication)),
                copy=total(union(on_device & ~kernel)),
            )
        )
    return usages


@derived
def recorded_device_usage(trace: Trace) -> list[DeviceUsage]:
    """Return how busy each device is over the entire recording."""
    recording = extent(trace)
    return device_usage(trace, recording.begin, recording.end)


def busiest_device(devices: Sequence[DeviceUsage]) -> DeviceUsage | None:
    """Return the device that is busy the longest, the first of equals."""
    return max(devices, key=lambda device: device.busy, default=None)


class NameTotals(msgspec.Struct, frozen=True):
    """Slices that touch a window, by name; all times are clipped to it, ns.

    name     int32[k]  codes
    row      int32[k]  the longest slice of the name inside the window
    count, total, self_time, min, max  int64[k]; nested slices don't cover `self_time`
    """

    name: Int32
    row: Int32
    count: Int64
    total: Int64
    self_time: Int64
    min: Int64
    max: Int64

    @property
    def slices(self) -> int:
        """Return how many slices of any name there are."""
        return int(self.count.sum())


def totals_by_name(trace: Trace, python: bool, chosen: Int64, begin: int, end: int) -> NameTotals:
    """Sum the slices in [begin, end) on some lanes by name.

    chosen  indices of the lanes, of those with Python frames if `python`
    """
    layout, slice_self_times = lanes(trace, python), self_times(trace, python)
    sums = _SumsByName(trace)
    for lane in chosen.tolist():
        low, high = layout.bounds[lane : lane + 2].tolist()
        first = low + int(np.searchsorted(layout.end[low:high], begin, "left"))
        last = low + int(np.searchsorted(layout.start[low:high], end, "left"))
        while first < last and layout.end[first] <= begin and layout.start[first] < begin:
            first += 1  # a slice that ends where the window begins is outside
        # Nothing overlaps in a lane, so only its first and last slice can reach over an edge.
        edges = {first, last - 1} if first < last else set()
        clipped = sorted(i for i in edges if layout.start[i] < begin or layout.end[i] > end)
        inner = slice(first + (first in clipped), last - (last - 1 in clipped and last - 1 > first))
        sums.add(layout.rows[inner], layout.end[inner] - layout.start[inner], slice_self_times[inner])
        start, finish = np.maximum(layout.start[clipped], begin), np.minimum(layout.end[clipped], end)
        nested = nested_time(layout, lane, start, finish)
        sums.add(layout.rows[clipped], finish - start, finish - start - nested)
    return sums.finish()


@derived
def self_times(trace: Trace, python: bool) -> Int64:
    """Return int64[k], the self time of every slice in ns, in the order of the lanes."""
    layout = lanes(trace, python)
    times = layout.end - layout.start
    for lane, (low, high) in enumerate(zip(layout.bounds[:-1].tolist(), layout.bounds[1:].tolist(), strict=True)):
        times[low:high] -= nested_time(layout, lane, layout.start[low:high], layout.end[low:high])
    return times


class _SumsByName:
    """Accumulates exact sums by name code; the last cell is for slices without a name."""

    def __init__(self, trace: Trace) -> None:
        size = len(trace.strings) + 1
        self._names = trace.events.name
        self._count, self._total, self._self = (np.zeros(size, np.int64) for _ in range(3))
        self._min, self._max = np.full(size, np.iinfo(np.int64).max), np.full(size, -1)
        self._row = np.full(size, NO_CODE, np.int32)

    def add(self, rows: Int32, durations: Int64, self_times: Int64) -> None:
        name = self._names[rows]
        np.add.at(self._count, name, 1)
        np.add.at(self._total, name, durations)
        np.add.at(self._self, name, self_times)
        np.minimum.at(self._min, name, durations)
        before = self._max.copy()
        np.maximum.at(self._max, name, durations)
        longest = np.flatnonzero((durations == self._max[name]) & (durations > before[name]))[::-1]
        self._row[name[longest]] = rows[longest]  # the first of equals, which is written last

    def finish(self) -> NameTotals:
        cells = np.flatnonzero(self._count)
        name = np.where(cells == len(self._count) - 1, NO_CODE, cells).astype(np.int32)
        return NameTotals(
            name,
            self._row[cells],
            self._count[cells],
            self._total[cells],
            self._self[cells],
            self._min[cells],
            self._max[cells],
        )


TotalsSort = Literal["total", "self", "count", "mean", "most", "name"]
"""What to sort the totals by; "most" is the longest slice."""


class NameTotal(msgspec.Struct, frozen=True):
    """One row of `NameTotals`, with the text of its name."""

    name: str
    row: int
    count: int
    total: int
    self_time: int
    min: int
    max: int


def sort_totals(trace: Trace, table: NameTotals, sort: TotalsSort, page: slice) -> list[NameTotal]:
    """Return a page of the table, largest first, or in alphabetical order if sorted by name."""
    texts = [trace.strings[code] if code >= 0 else "" for code in table.name.tolist()]
    columns = (table.row, table.count, table.total, table.self_time, table.min, table.max)
    return [
        NameTotal(texts[i], *(int(column[i]) for column in columns)) for i in _sort_order(table, texts, sort)[page]
    ]


def _sort_order(table: NameTotals, texts: list[str], sort: TotalsSort) -> list[int]:
    if sort == "name":
        return sorted(range(len(texts)), key=texts.__getitem__)
    keys = {
        "total": table.total,
        "self": table.self_time,
        "count": table.count,
        "mean": table.total / table.count,
        "most": table.max,
    }
    order: list[int] = np.argsort(-keys[sort], kind="stable").tolist()
    return order


class FamilyTotal(msgspec.Struct, frozen=True):
    """Device work of one family in a window, clipped to it, ns."""

    family: str
    count: int
    total: int


def totals_by_family(trace: Trace, table: NameTotals) -> list[FamilyTotal]:
    """Sum device work by family, most time first; a name counts as what its longest slice is."""
    code = family_codes(trace)[table.row]
    rows = [
        FamilyTotal(
            FAMILIES[family], int(table.count[code == family].sum()), int(table.total[code == family].sum())
        )
        for family in distinct_codes(code.astype(np.int32))
    ]
    return sorted(rows, key=lambda row: row.total, reverse=True)


def family_of(trace: Trace, row: int) -> str | None:
    """Return the kernel family of device work, or None for any other event."""
    code = int(family_codes(trace)[row])
    return FAMILIES[code] if code >= 0 else None


def busy_of_tracks(layout: Lanes, lanes: Int64, begin: int, end: int) -> dict[int, int]:
    """Return, by track, the ns of [begin, end) that its slices on these lanes (by index) cover."""
    parts: dict[int, list[slice]] = {}
    for lane in lanes.tolist():
        if layout.root[lane]:  # nested slices add no covered time
            parts.setdefault(int(layout.track[lane]), []).append(slice(*layout.bounds[lane : lane + 2]))
    return {
        track: total(
            merge(
                np.maximum(np.concatenate([layout.start[part] for part in slices]), begin),
                np.minimum(np.concatenate([layout.end[part] for part in slices]), end),
            )
        )
        for track, slices in parts.items()
    }


class WindowSummary(msgspec.Struct, frozen=True):
    """The work in a window: that of the devices, or that of the host threads if the trace has no streams.

    length         ns of the window that lie within the recording, at least 1
    slices, names  of that work
    on_device      whether it is the work of devices
    top            the name with the most self time, None if there is no slice
    devices        how busy each device is
    """

    length: int
    slices: int
    names: int
    on_device: bool
    top: NameTotal | None
    devices: list[DeviceUsage]


def summarize_window(trace: Trace, begin: int, end: int) -> WindowSummary:
    """Summarize what [begin, end) is spent on."""
    recording, work = extent(trace), work_tracks(trace)
    table = totals_by_name(trace, False, lanes(trace, False).of_tracks(work), begin, end)
    top = sort_totals(trace, table, "self", slice(0, 1))
    return WindowSummary(
        length=max(min(end, recording.end) - max(begin, recording.begin), 1),
        slices=table.slices,
        names=len(table.name),
        on_device=any(tracks(trace).tracks[id].kind == "stream" for id in work),
        top=top[0] if top else None,
        devices=device_usage(trace, begin, end),
    )
