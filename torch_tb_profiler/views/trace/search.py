"""Searching the timeline by name."""

from __future__ import annotations

from typing import Annotated

import msgspec

from torch_tb_profiler.analyses.timeline.search import next_hit, search
from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import Page, TraceView
from torch_tb_profiler.views._shared.text import Text
from torch_tb_profiler.views.trace import words
from torch_tb_profiler.views.trace.event import TraceRef, ref


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

    headline: Text
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
    hits = search(trace, params.query, regex=params.regex)
    before, after = next_hit(trace, hits, params.at, params.event)
    rows = hits.rows if params.track < 0 else hits.on(params.track)
    by_track = [TrackHits(track, count) for track, count in enumerate(hits.by_track.tolist()) if count]

    def hit(index: int | None) -> TraceRef | None:
        return None if index is None else ref(trace, int(hits.rows[index]), params.python)

    return TraceSearch(
        headline=words.search(params.query, params.regex, len(hits.rows), len(by_track)),
        hits=len(hits.rows),
        by_track=by_track,
        rows=[ref(trace, row, params.python) for row in rows[params.rows].tolist()],
        previous=hit(before),
        next=hit(after),
        index=after,
    )


PARTS = (TraceView("trace/search", "Search", SearchParams, TraceSearch, build_search),)
