"""The legend of the timeline."""

from __future__ import annotations

import msgspec

from torch_tb_profiler.analyses.timeline.colors import ColorBy, legend
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import TraceView


class ColorsParams(msgspec.Struct, frozen=True):
    """`by`: class, family (of kernels), process_group or module."""

    by: ColorBy = "class"


class TraceColors(msgspec.Struct, frozen=True):
    """The legend: texts by color code; code 0 of all but classes is "none". "" is a family without work."""

    by: str
    texts: list[str]


def build_colors(trace: Trace, params: ColorsParams) -> TraceColors:
    """What the color codes of a tile mean."""
    return TraceColors(params.by, legend(trace, params.by))


PARTS = (TraceView("trace/colors", "Timeline colors", ColorsParams, TraceColors, build_colors),)
