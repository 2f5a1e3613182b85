"""The collectives that join chosen ranks within a window."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from torch_tb_profiler.views._shared.text import Text


class ConnectionsParams(msgspec.Struct, frozen=True):
    """`workers`: names, percent-encoded, separated by commas. [begin, end) in job time, default all.

    At most `limit` collectives are answered, the longest ones.
    """

    workers: str = ""
    begin: int | None = None
    end: int | None = None
    limit: int = 300


class AlignedRank(msgspec.Struct, frozen=True):
    """A chosen worker and its state.

    shift_ns  leads from its trace's time to the job's; null: it is not read, or its clock cannot be aligned
    """

    worker: str
    rank: int | None
    span: str
    state: Literal["waiting", "loading", "ready", "failed"]
    shift_ns: int | None


class Connection(msgspec.Struct, frozen=True):
    """One collective; columns with an entry per chosen rank that takes part.

    members    index into `ranks`
    events     row in that rank's trace
    starts_ns, ends_ns  job time
    """

    collective: int
    group: int
    name: str
    members: list[int]
    events: list[int]
    starts_ns: list[int]
    ends_ns: list[int]


class Connections(msgspec.Struct, frozen=True):
    """`total` collectives join the chosen ranks in the window; `rows` are the longest of them.

    headline  which ranks are on one clock, and which keep the others waiting
    details   how many collectives join them, and which workers are left out
    late      those that keep the others of the job waiting, most cost first: indices into `ranks`
    """

    headline: Text
    details: Text
    ranks: list[AlignedRank]
    late: list[int]
    origin_ns: int | None
    rows: list[Connection]
    total: int
    reasons: Mapping[str, Text]
