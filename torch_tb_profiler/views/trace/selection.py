"""How a window is spent: a headline, totals by name, how busy devices and tracks are."""

from __future__ import annotations

import msgspec

from torch_tb_profiler.analyses.timeline.colors import class_of
from torch_tb_profiler.analyses.timeline.window import (
    NameTotal,
    TotalsSort,
    busy_of_tracks,
    device_usage,
    family_of,
    sort_totals,
    summarize_window,
    totals_by_family,
    totals_by_name,
)
from torch_tb_profiler.analyses.tracks.lanes import lanes
from torch_tb_profiler.analyses.tracks.tracks import device_labels, tracks
from torch_tb_profiler.model.health import is_truncated
from torch_tb_profiler.model.kernels.short_names import display_name
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import Page, TraceView
from torch_tb_profiler.views._shared.text import Text
from torch_tb_profiler.views.trace import words
from torch_tb_profiler.views.trace.payload import Time, WindowParams, check_order, first_window, track_ids


class TraceHeadline(msgspec.Struct, frozen=True):
    """A window in sentences.

    headline  how busy the busiest device is and what takes the most time; without a device: the name with the
              most self time
    detail    how much is in the window, and how much of the communication overlaps compute
    """

    headline: Text
    detail: Text


def build_headline(trace: Trace, params: WindowParams) -> TraceHeadline:
    """Build the sentences about a window."""
    summary = summarize_window(trace, params.begin, params.end)
    labels, top = device_labels(trace), summary.top
    name = display_name(trace, top.row, top.name) if top else ""
    truncated = is_truncated(trace.health)
    if truncated:
        headline = words.truncated_window(summary, name, params.begin, params.end)
    else:
        headline = words.window(summary, name, labels, params.begin, params.end)
    return TraceHeadline(
        headline=headline,
        detail=words.window_detail(summary, params.end - params.begin, truncated),
    )


class SelectionParams(Page, frozen=True, kw_only=True):
    """A window [begin, end) in ns and tracks (ids; empty: all); `sort`: total, self, count, mean, most or name."""

    begin: Time
    end: Time
    tracks: str = ""
    python: bool = False
    sort: TotalsSort = "total"

    def __post_init__(self) -> None:
        check_order(self.begin, self.end)


class SelectionRow(msgspec.Struct, frozen=True):
    """Slices of one name, their times clipped to the window. `event` is the longest of them.

    short_name  for a kernel its name in the Kernels view, else `name`
    family      of kernels, copies and memsets ("matrix product"); null for all else
    """

    name: str
    short_name: str
    family: str | None
    color: int
    count: int
    total_ns: int
    self_ns: int
    mean_ns: float
    min_ns: int
    max_ns: int
    event: int


class SelectionFamily(msgspec.Struct, frozen=True):
    """Kernels, copies and memsets of one family, their times clipped to the window."""

    family: str
    count: int
    total_ns: int


class SelectionDevice(msgspec.Struct, frozen=True):
    """One device: busy + idle = the window; `compute` are kernels without communication."""

    device: int
    busy_ns: int
    idle_ns: int
    compute_ns: int
    communication_ns: int
    overlap_ns: int
    copy_ns: int


class SelectionTrack(msgspec.Struct, frozen=True):
    """How much of the window the slices of a track cover."""

    track: int
    busy_ns: int


class TraceSelection(msgspec.Struct, frozen=True):
    """Totals of a window: by name, and busy, idle and overlap per device.

    names, slices  count all of them, whatever `rows` lists
    summary   how each device spends the window, one text each; or that no device work was recorded
    families  of device work, most time first
    """

    summary: list[Text]
    begin_ns: int
    end_ns: int
    slices: int
    names: int
    rows: list[SelectionRow]
    families: list[SelectionFamily]
    devices: list[SelectionDevice]
    tracks: list[SelectionTrack]


def build_selection(trace: Trace, params: SelectionParams) -> TraceSelection:
    """Build the totals of a window by name, largest first."""
    begin, end = params.begin, params.end
    layout = lanes(trace, params.python)
    chosen = layout.of_tracks([id for id in track_ids(trace, params.tracks) if _has_slices(trace, id)])
    table = totals_by_name(trace, params.python, chosen, begin, end)
    usages = device_usage(trace, begin, end)
    describe = words.truncated_devices if is_truncated(trace.health) else words.devices
    return TraceSelection(
        summary=describe(usages, device_labels(trace)),
        begin_ns=begin,
        end_ns=end,
        slices=table.slices,
        names=len(table.name),
        rows=[_build_row(trace, row) for row in sort_totals(trace, table, params.sort, params.rows)],
        families=[
            SelectionFamily(total.family, total.count, total.total) for total in totals_by_family(trace, table)
        ],
        devices=[
            SelectionDevice(
                usage.device,
                usage.busy,
                usage.idle,
                usage.compute,
                usage.communication,
                usage.overlap,
                usage.copy,
            )
            for usage in usages
        ],
        tracks=[SelectionTrack(track, busy) for track, busy in busy_of_tracks(layout, chosen, begin, end).items()],
    )


def _has_slices(trace: Trace, id: int) -> bool:
    slice_tracks = tracks(trace).tracks
    return 0 <= id < len(slice_tracks) and slice_tracks[id].kind != "instants"


def _build_row(trace: Trace, row: NameTotal) -> SelectionRow:
    return SelectionRow(
        name=row.name,
        short_name=display_name(trace, row.row, row.name),
        family=family_of(trace, row.row),
        color=class_of(trace, row.row),
        count=row.count,
        total_ns=row.total,
        self_ns=row.self_time,
        mean_ns=row.total / row.count,
        min_ns=row.min,
        max_ns=row.max,
        event=row.row,
    )


PARTS = (
    TraceView(
        "trace/headline",
        "Headline of a window",
        WindowParams,
        TraceHeadline,
        build_headline,
        answers="What a window of the timeline shows, in one or two sentences.",
        first=lambda trace: (WindowParams(*first_window(trace)),),
    ),
    TraceView("trace/selection", "Selection", SelectionParams, TraceSelection, build_selection),
)
