"""What the timeline shows of the tracks: level of detail, counters, search, selections."""

from __future__ import annotations

import msgspec


class ExcerptRange(msgspec.Struct, frozen=True):
    """The events to put into a file of their own.

    begin, end       ns since the trace's start; events that touch [begin, end) are included; None: no limit
    step             name of a step, instead of begin and end
    categories       of slices and instants, separated by commas, in any case; empty: all
    min_duration_ns  shorter slices are left out
    """

    begin: int | None = None
    end: int | None = None
    step: str | None = None
    categories: str = ""
    min_duration_ns: int = 0
