"""Idle time of drawn traces as text: what a test compares."""

from __future__ import annotations

from torch_tb_profiler.analyses.idle.device_time import device_step_times
from torch_tb_profiler.analyses.schedule.causes import CAUSE_NAMES
from torch_tb_profiler.analyses.schedule.segments import idle_segments
from torch_tb_profiler.analyses.tracks.sources import name_of
from torch_tb_profiler.model.trace import Trace


def idle(trace: Trace, device: int = 0, stream: int | None = None) -> list[tuple[float, str, str]]:
    """Return (us, cause, blamed slice) of each part of the idle time; the laws hold."""
    found = idle_segments(trace, device, stream)
    times = device_step_times(trace, device, stream)
    parts = times.compute + times.communication + times.copies + times.idle
    assert (parts == times.duration).all()
    assert int(found.length.sum()) == int(times.idle[times.complete].sum())
    assert (found.length > 0).all()
    assert (found.begin[1:] >= found.end[:-1]).all()
    columns = zip(found.length.tolist(), found.cause.tolist(), found.row.tolist(), strict=True)
    return [(ns / 1000, CAUSE_NAMES[cause], name_of(trace, row) if row >= 0 else "") for ns, cause, row in columns]


def find_draining_calls(trace: Trace, device: int = 0) -> list[str]:
    """Return for each gap the call that drained the queue, "" where the device caught up."""
    rows = idle_segments(trace, device).gaps.emptied_by.tolist()
    return [name_of(trace, row) if row >= 0 else "" for row in rows]
