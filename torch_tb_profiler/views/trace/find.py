"""Searching the timeline, and adding up a part of it."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.timeline.colors import classes
from torch_tb_profiler.analyses.timeline.search import next_hit, search
from torch_tb_profiler.analyses.timeline.selection import Totals, busy_of_tracks, device_times, totals
from torch_tb_profiler.analyses.tracks.lanes import lanes_of
from torch_tb_profiler.analyses.tracks.tracks import tracks
from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import Page, TraceView
from torch_tb_profiler.views.trace.event import TraceRef, ref
from torch_tb_profiler.views.trace.tiles import check_window, track_ids


class SearchParams(Page, frozen=True, kw_only=True):
    """Part of a name, or a regular expression; case does not matter.

    at, event  where the reader is: the hit `event` that starts at `at`, or a time (event -1)
    track      list only the hits of this track; -1: of all
    first, limit  which hits to list, in order of time
    """

    query: str
    regex: bool = False
    at: int = 0
    event: int = -1
    track: int = -1
    limit: Annotated[int, msgspec.Meta(ge=0)] | None = 100
    python: bool = False


class TrackHits(msgspec.Struct, frozen=True):
    track: int
    hits: int


class TraceSearch(msgspec.Struct, frozen=True):
    """How many slices and instants match; `index` is the position of `next` among all hits."""

    hits: int
    by_track: list[TrackHits]
    rows: list[TraceRef]
    previous: TraceRef | None
    next: TraceRef | None
    index: int | None


def build_search(trace: Trace, params: SearchParams) -> TraceSearch:
    """Hits by name."""
    if not params.query:
        raise UsageError("query is empty", hint="give a part of a name")
    found = search(trace, params.query, regex=params.regex)
    before, after = next_hit(trace, found, params.at, params.event)
    listed = found.rows
    if params.track >= 0:
        listed = found.rows[found.track == params.track]
    chosen = listed[params.rows]

    def place(position: int | None) -> TraceRef | None:
        return None if position is None else ref(trace, int(found.rows[position]), params.python)

    return TraceSearch(
        hits=len(found.rows),
        by_track=[TrackHits(i, hits) for i, hits in enumerate(found.by_track.tolist()) if hits],
        rows=[ref(trace, row, params.python) for row in chosen.tolist()],
        previous=place(before),
        next=place(after),
        index=after,
    )


class SelectionParams(Page, frozen=True, kw_only=True):
    """A window [begin, end) in ns and tracks (ids; empty: all); `sort`: total, self, count, mean, most or name."""

    begin: int
    end: int
    tracks: str = ""
    python: bool = False
    sort: Literal["total", "self", "count", "mean", "most", "name"] = "total"


class SelectionRow(msgspec.Struct, frozen=True):
    """Slices of one name, their times clipped to the window. `event` is the longest of them."""

    name: str
    colour: int
    count: int
    total_ns: int
    self_ns: int
    mean_ns: float
    min_ns: int
    max_ns: int
    event: int


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
    """What happens in a window. `names` and `slices` count all of them, whatever `rows` lists."""

    begin_ns: int
    end_ns: int
    slices: int
    names: int
    rows: list[SelectionRow]
    devices: list[SelectionDevice]
    tracks: list[SelectionTrack]


_SORTS = {
    "total": lambda found: found.total,
    "self": lambda found: found.self_time,
    "count": lambda found: found.count,
    "mean": lambda found: found.total / found.count,
    "most": lambda found: found.most,
}


def build_selection(trace: Trace, params: SelectionParams) -> TraceSelection:
    """Totals of a window by name, largest first."""
    check_window(params.begin, params.end, 1)
    laid = lanes_of(trace, params.python)
    wanted = [id for id in track_ids(trace, params.tracks) if _has_slices(trace, id)]
    which = np.flatnonzero(np.isin(laid.track, wanted))
    found = totals(trace, params.python, which, params.begin, params.end)
    rows = [_row(trace, found, i) for i in _order(trace, found, params.sort)]
    busy = busy_of_tracks(laid, which, params.begin, params.end)
    return TraceSelection(
        begin_ns=params.begin,
        end_ns=params.end,
        slices=int(found.count.sum()),
        names=len(rows),
        rows=rows[params.rows],
        devices=[
            SelectionDevice(
                each.device, each.busy, each.idle, each.compute, each.communication, each.overlap, each.copy
            )
            for each in device_times(trace, params.begin, params.end)
        ],
        tracks=[SelectionTrack(track, time) for track, time in busy.items()],
    )


def _has_slices(trace: Trace, id: int) -> bool:
    listed = tracks(trace).tracks
    return 0 <= id < len(listed) and listed[id].kind != "instants"


def _order(trace: Trace, found: Totals, sort: str) -> list[int]:
    if sort == "name":
        return sorted(range(len(found.name)), key=lambda i: _name(trace, found, i))
    order: list[int] = np.argsort(-_SORTS[sort](found), kind="stable").tolist()
    return order


def _name(trace: Trace, found: Totals, i: int) -> str:
    return trace.strings[found.name[i]] if found.name[i] >= 0 else ""


def _row(trace: Trace, found: Totals, i: int) -> SelectionRow:
    count, time = int(found.count[i]), int(found.total[i])
    return SelectionRow(
        name=_name(trace, found, i),
        colour=int(classes(trace)[found.row[i]]),
        count=count,
        total_ns=time,
        self_ns=int(found.self_time[i]),
        mean_ns=time / count,
        min_ns=int(found.least[i]),
        max_ns=int(found.most[i]),
        event=int(found.row[i]),
    )


PARTS = (
    TraceView("trace/search", "Search", SearchParams, TraceSearch, build_search),
    TraceView("trace/selection", "Selection", SelectionParams, TraceSelection, build_selection),
)
