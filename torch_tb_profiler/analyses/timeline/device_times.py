"""How busy devices and tracks are in a window, and what runs at the same time."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.tracks.lanes import Lanes
from torch_tb_profiler.base.intervals import Intervals, intersect, merge, total
from torch_tb_profiler.model.calls.missing import missing_kernels_reason
from torch_tb_profiler.model.communication.events import is_communication_kernel
from torch_tb_profiler.model.devices import device_ids, devices
from torch_tb_profiler.model.kinds import DEVICE_KINDS, Kind, event_ends, event_kinds, rows_of_kind
from torch_tb_profiler.model.trace import Bool, Int64, Trace


class DeviceTime(msgspec.Struct, frozen=True):
    """One device in a window, ns. busy + idle = the window; busy = union of all work.

    compute  kernels other than communication; `overlap`: while communication and other kernels run together
    copy     memcpy and memset
    """

    device: int
    busy: int
    idle: int
    compute: int
    communication: int
    overlap: int
    copy: int


def device_times(trace: Trace, begin: int, end: int) -> list[DeviceTime]:
    """Every device in [begin, end); none where kernels are missing: when they work is unknown then."""
    if missing_kernels_reason(trace) is not None:
        return []
    rows = rows_of_kind(trace, *DEVICE_KINDS)
    rows = rows[(trace.events.start[rows] < end) & (event_ends(trace)[rows] > begin)]
    owner, kernel = device_ids(trace)[rows], event_kinds(trace)[rows] == Kind.KERNEL
    communicates = is_communication_kernel(trace)[rows]

    def union(mask: Bool) -> Intervals:
        chosen = rows[mask]
        return merge(np.maximum(trace.events.start[chosen], begin), np.minimum(event_ends(trace)[chosen], end))

    times = []
    for info in devices(trace):
        mine = owner == info.id
        compute, communication = union(mine & kernel & ~communicates), union(mine & kernel & communicates)
        busy = total(union(mine))
        times.append(
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
    return times


def busy_of_tracks(layout: Lanes, lanes: Int64, begin: int, end: int) -> dict[int, int]:
    """Track -> ns of [begin, end) that its slices on these lanes (by index) cover."""
    parts: dict[int, list[slice]] = {}
    for lane in lanes.tolist():
        if layout.root[lane]:  # what is nested covers nothing more
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
