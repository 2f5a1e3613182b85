"""How a window is spent, in words."""

from __future__ import annotations

import msgspec

from torch_tb_profiler.analyses.timeline.summary import summarize
from torch_tb_profiler.analyses.tracks.tracks import device_labels
from torch_tb_profiler.model.health import is_truncated
from torch_tb_profiler.model.kernels.short_names import display_name
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import TraceView
from torch_tb_profiler.views._shared.text import Text
from torch_tb_profiler.views.trace import words
from torch_tb_profiler.views.trace.params import Time, check_order, first_window


class HeadlineParams(msgspec.Struct, frozen=True):
    """A window [begin, end) in ns."""

    begin: Time
    end: Time

    def __post_init__(self) -> None:
        check_order(self.begin, self.end)


class TraceHeadline(msgspec.Struct, frozen=True):
    """A window in words.

    headline  how busy the busiest device is and what takes the most time; without a device the name with the most
              self time
    detail    how much is in the window, and how much of the communication overlaps compute
    """

    headline: Text
    detail: Text


def build_headline(trace: Trace, params: HeadlineParams) -> TraceHeadline:
    """What a person should know of a window first."""
    summary = summarize(trace, params.begin, params.end)
    labels, top = device_labels(trace), summary.top
    name = display_name(trace, top.row, top.name) if top else ""
    window = (params.begin, params.end)
    cut_off = is_truncated(trace.health)
    return TraceHeadline(
        headline=words.cut_window(summary, name, *window)
        if cut_off
        else words.window(summary, name, labels, *window),
        detail=words.window_detail(summary, params.end - params.begin, cut_off),
    )


PARTS = (
    TraceView(
        "trace/headline",
        "Headline of a window",
        HeadlineParams,
        TraceHeadline,
        build_headline,
        answers="What a window of the timeline shows, in words.",
        first=lambda trace: (HeadlineParams(*first_window(trace)),),
    ),
)
