"""The contents of the timeline: slices by level of detail, counters, search, selections, excerpts."""

from __future__ import annotations

import msgspec


class ExcerptRange(msgspec.Struct, frozen=True):
    """Which events an excerpt includes.

    begin, end       ns since the trace's start; events that touch [begin, end) are included; None: no limit
    step             name of a step, instead of begin and end
    categories       of slices and instants, separated by commas, case-insensitive; empty: all
    min_duration_ns  shorter slices are left out
    """

    begin: int | None = None
    end: int | None = None
    step: str | None = None
    categories: str = ""
    min_duration_ns: int = 0
