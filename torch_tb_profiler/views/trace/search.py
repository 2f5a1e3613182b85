"""Searching the timeline by name."""

from __future__ import annotations

from typing import Annotated

import msgspec

from torch_tb_profiler.analyses.timeline.boxes import Grid
from torch_tb_profiler.analyses.timeline.search import adjacent_hits, find_hits, hit_places
from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import Page, TraceView
from torch_tb_profiler.views._shared.text import Text
from torch_tb_profiler.views.trace import words
from torch_tb_profiler.views.trace.event import TraceRef, event_ref
from torch_tb_profiler.views.trace.payload import Time, Width, check_order


class SearchParams(Page, frozen=True, kw_only=True):
    """Part of a name, or a regular expression; case does not matter.

    at, event  where to search from: the hit `event` that starts at `at`, or a time (event -1)
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
    """How many hits a track has."""

    track: int
    hits: int


class TraceSearch(msgspec.Struct, frozen=True):
    """How many slices and instants match; `index` is the position of `next` among all hits."""

    headline: Text
    hits: int
    by_track: list[TrackHits]
    rows: list[TraceRef]
    previous: TraceRef | None
    next: TraceRef | None
    index: int | None


def build_search(trace: Trace, params: SearchParams) -> TraceSearch:
    """Build the hits of a search by name."""
    if not params.query:
        raise UsageError("query is empty", hint="give a part of a name")
    hits = find_hits(trace, params.query, regex=params.regex)
    before, after = adjacent_hits(trace, hits, params.at, params.event)
    rows = hits.rows if params.track < 0 else hits.rows_on_track(params.track)
    by_track = [TrackHits(track, count) for track, count in enumerate(hits.by_track.tolist()) if count]

    def hit_ref(index: int | None) -> TraceRef | None:
        return None if index is None else event_ref(trace, int(hits.rows[index]), params.python)

    return TraceSearch(
        headline=words.search(params.query, params.regex, len(hits.rows), len(by_track)),
        hits=len(hits.rows),
        by_track=by_track,
        rows=[event_ref(trace, row, params.python) for row in rows[params.rows].tolist()],
        previous=hit_ref(before),
        next=hit_ref(after),
        index=after,
    )


class HitsParams(msgspec.Struct, frozen=True):
    """What to find, as in a search, and the window [begin, end) in ns in which to highlight it."""

    query: str
    begin: Time
    end: Time
    regex: bool = False
    width: Width = 1500
    python: bool = False

    def __post_init__(self) -> None:
        check_order(self.begin, self.end)


class TraceHits(msgspec.Struct, frozen=True):
    """Where the hits of a search are drawn in a window, as columns, by lane.

    track, depth      the lane
    begin_ns, end_ns  since the trace's start; hits of a lane with no visible gap at `width` are one entry, and
                      so are hits farther apart if there would be more than 8,000 entries
    """

    track: list[int]
    depth: list[int]
    begin_ns: list[int]
    end_ns: list[int]


def build_hits(trace: Trace, params: HitsParams) -> TraceHits:
    """Build the places of the hits; empty if nothing drawn in the window matches."""
    if not params.query:
        raise UsageError("query is empty", hint="give a part of a name")
    rows = find_hits(trace, params.query, regex=params.regex).rows
    resolution = Grid.of(params.begin, params.end, params.width).resolution
    places = hit_places(trace, rows, params.begin, params.end, resolution, python=params.python)
    return TraceHits(places.track.tolist(), places.depth.tolist(), places.begin.tolist(), places.end.tolist())


PARTS = (
    TraceView("trace/search", "Search", SearchParams, TraceSearch, build_search),
    TraceView("trace/hits", "Hits on the timeline", HitsParams, TraceHits, build_hits),
)
