"""Exported memory timelines: bytes by category over time."""

from __future__ import annotations

import msgspec

from torch_tb_profiler.analyses.memory.timeline import stacked
from torch_tb_profiler.model.memory.exports import RecordedTimeline
from torch_tb_profiler.view import FileParams, FileView, Float64s
from torch_tb_profiler.views._shared.text import Text
from torch_tb_profiler.views.memory import file_words
from torch_tb_profiler.views.memory.curve import Points


class TimelineParams(FileParams, frozen=True):
    """A memory timeline of the run."""

    points: Points = 1000


class MemoryTimeline(msgspec.Struct, frozen=True):
    """An exported memory timeline (`profiler.export_memory_timeline("x.raw.json.gz")`) as stacked categories.

    headline     the peak and what most of it is
    categories   parameter, optimizer state, input, temporary, activation, gradient, autograd detail, unknown:
                 those that occur, in this order
    time         little-endian float64 ns (base64), as the file has it; the first is that of the first event
                 that has one
    sizes        per category a column like `time`: its bytes at the moment of the point's bucket when all
                 together were greatest, so that the stack reaches the exact peak
    peak_...     all categories together at most, when, and each category then
    start_bytes  there before the first event, per category
    """

    headline: Text
    events: int
    categories: list[str]
    time: Float64s
    sizes: list[Float64s]
    begin_ns: int
    end_ns: int
    peak_bytes: int
    peak_time_ns: int
    peak_sizes: list[int]
    start_bytes: list[int]


def build_timeline(timeline: RecordedTimeline, params: TimelineParams) -> MemoryTimeline:
    """The stacked areas, as far as the file has them."""
    areas = stacked(timeline, params.points)
    peak_sizes = areas.peak_sizes.tolist()
    return MemoryTimeline(
        headline=file_words.timeline_headline(areas.categories, peak_sizes, areas.peak),
        events=len(timeline.time),
        categories=list(areas.categories),
        time=areas.time,
        sizes=list(areas.sizes),
        begin_ns=areas.begin,
        end_ns=areas.end,
        peak_bytes=areas.peak,
        peak_time_ns=areas.peak_time,
        peak_sizes=peak_sizes,
        start_bytes=areas.start.tolist(),
    )


TIMELINE = FileView(
    "memory/timeline", "Memory timeline", TimelineParams, MemoryTimeline, build_timeline, "timeline"
)
