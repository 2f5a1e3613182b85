"""An exported memory timeline as stacked categories."""

from __future__ import annotations

import msgspec

from torch_tb_profiler.analyses.memory.timeline import stack_categories
from torch_tb_profiler.model.memory.exports import RecordedTimeline
from torch_tb_profiler.view import FileParams, FileView, Float64s
from torch_tb_profiler.views._shared.text import Text
from torch_tb_profiler.views.memory import words
from torch_tb_profiler.views.memory.curve import Points


class TimelineParams(FileParams, frozen=True):
    """A memory timeline of the run."""

    points: Points = 1000


class MemoryTimeline(msgspec.Struct, frozen=True):
    """An exported memory timeline (`profiler.export_memory_timeline("x.raw.json.gz")`) as stacked categories.

    headline     the peak and its largest category
    categories   parameter, optimizer state, input, temporary, activation, gradient, autograd detail, unknown:
                 those that occur, in this order
    time         little-endian float64 ns (base64), as the file has it; the first is that of the first event
                 that has one
    sizes        per category a column like `time`: its bytes when the sum over the categories peaks in
                 the point's bucket, so that the stack reaches the exact peak
    peak_...     largest sum over the categories, when, and the bytes of each category then
    start_bytes  before the first event, per category
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
    """Build the stacked areas of the categories in the file."""
    stack = stack_categories(timeline, params.points)
    peak_sizes = stack.peak_sizes.tolist()
    return MemoryTimeline(
        headline=words.timeline_headline(stack.categories, peak_sizes, stack.peak),
        events=len(timeline.time),
        categories=list(stack.categories),
        time=stack.time,
        sizes=list(stack.sizes),
        begin_ns=stack.begin,
        end_ns=stack.end,
        peak_bytes=stack.peak,
        peak_time_ns=stack.peak_time,
        peak_sizes=peak_sizes,
        start_bytes=stack.start.tolist(),
    )


TIMELINE = FileView(
    "memory/timeline", "Memory timeline", TimelineParams, MemoryTimeline, build_timeline, "timeline"
)
