"""How a window is spent, in a few numbers."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from torch_tb_profiler.analyses.timeline.device_times import DeviceTime, device_times
from torch_tb_profiler.analyses.timeline.totals import NameTotal, ranked, totals
from torch_tb_profiler.analyses.tracks.extent import extent
from torch_tb_profiler.analyses.tracks.lanes import lanes
from torch_tb_profiler.analyses.tracks.tracks import tracks, work_tracks
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.trace import Trace


class WindowSummary(msgspec.Struct, frozen=True):
    """A window by the work in it: that of the devices, or of the threads if the trace has no streams.

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
    devices: list[DeviceTime]


def summarize(trace: Trace, begin: int, end: int) -> WindowSummary:
    """What [begin, end) is spent on."""
    whole, work = extent(trace), work_tracks(trace)
    table = totals(trace, False, lanes(trace, False).of_tracks(work), begin, end)
    top = ranked(trace, table, "self", slice(0, 1))
    return WindowSummary(
        length=max(min(end, whole.end) - max(begin, whole.begin), 1),
        slices=table.slices,
        names=len(table.name),
        on_device=any(tracks(trace).tracks[id].kind == "stream" for id in work),
        top=top[0] if top else None,
        devices=device_times(trace, begin, end),
    )


@derived
def recorded_device_times(trace: Trace) -> list[DeviceTime]:
    """How busy each device is over the whole recording."""
    whole = extent(trace)
    return device_times(trace, whole.begin, whole.end)


def busiest(devices: Sequence[DeviceTime]) -> DeviceTime | None:
    """The device that is busy the longest, the first of equals."""
    return max(devices, key=lambda device: device.busy, default=None)
