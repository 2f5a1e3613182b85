"""Which part of a trace is wanted as a file of its own."""

from __future__ import annotations

import msgspec


class ExcerptRange(msgspec.Struct, frozen=True):
    """What to keep.

    begin, end       ns since the trace's start; what touches [begin, end) is kept; None: open
    step             name of a step, instead of begin and end
    categories       of slices and instants, with commas between them, in any case; empty: all
    min_duration_ns  shorter slices are left out
    """

    begin: int | None = None
    end: int | None = None
    step: str | None = None
    categories: str = ""
    min_duration_ns: int = 0
