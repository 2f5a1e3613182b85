"""One moment of a device: what runs, or the gap that it lies in, part by part."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.idle.device_time import device_time
from torch_tb_profiler.analyses.schedule.segments import segments
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import Trace


class Part(msgspec.Struct, frozen=True):
    """[begin, end) in ns on the device's own clock, spent on one of CATEGORIES; `row` as in `DeviceTime`."""

    category: int
    row: int
    begin: int
    end: int


class Gap(msgspec.Struct, frozen=True):
    """A gap with its parts in order of time; `emptied_by`: row of the call that emptied the queue, or NO_CODE."""

    begin: int
    end: int
    emptied_by: int
    parts: tuple[Part, ...]

    def longest(self, count: int) -> list[Part]:
        """So many of the parts, in order of time."""
        chosen = sorted(self.parts, key=lambda part: part.begin - part.end)[:count]
        return sorted(chosen, key=lambda part: part.begin)


class Moment(msgspec.Struct, frozen=True):
    """The part that a time lies in, the step, and the gap if the device waits."""

    part: Part
    step: str
    gap: Gap | None


def moment(trace: Trace, device: int, begin: int, end: int, category: int | None = None) -> Moment:
    """The longest part of a category (of any if None) that touches [begin, end), ns on the device's own clock.

    NotFoundError if nothing ran on the device, or the complete steps have no such part there.
    """
    table, spans = device_time(trace, device), steps(trace)
    low = int(np.searchsorted(table.end, begin, "right"))
    places = np.arange(low, max(int(np.searchsorted(table.begin, end, "left")), low))
    if category is not None:
        places = places[table.category[places] == category]
    if len(places) == 0:
        raise NotFoundError(f"there is no such part of a complete step from {begin} to {end} ns")
    at = int(places[np.argmax(table.length[places])])

    def part(at: int) -> Part:
        return Part(int(table.category[at]), int(table.row[at]), int(table.begin[at]), int(table.end[at]))

    inside = np.flatnonzero(spans.complete & (spans.starts <= table.begin[at]))
    name, segment = spans.names[int(inside[-1])], int(table.segment[at])
    if segment < 0:
        return Moment(part(at), name, None)
    idle = segments(trace, device)
    gap = int(idle.gap[segment])
    first, last = int(idle.gaps.begin[gap]), int(idle.gaps.end[gap])
    around = range(*np.searchsorted(table.begin, [first, last], "left").tolist())
    parts = tuple(part(each) for each in around)
    return Moment(part(at), name, Gap(first, last, int(idle.gaps.emptied_by[gap]), parts))
