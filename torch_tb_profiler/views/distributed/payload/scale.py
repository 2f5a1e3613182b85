"""A job of any number of ranks in bounded size: percentiles, groups by family, hosts, a map of maxima."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from torch_tb_profiler.analyses.distributed.heat_map import MapValue
from torch_tb_profiler.analyses.distributed.steps import SpreadMeasure
from torch_tb_profiler.views._shared.text import Text


class Spread(msgspec.Struct, frozen=True):
    """One measure over all ranks that have it, ns per step; percentiles are linear between the nearest ranks.

    measure  as in `JobRank`: duration, computation, overlap, exposed, other, transfer, waiting, cost
    least_worker, most_worker  the first rank with the least and with the greatest
    """

    measure: SpreadMeasure
    ranks: int
    mean_ns: float
    least_ns: float
    p10_ns: float
    median_ns: float
    p90_ns: float
    p99_ns: float
    most_ns: float
    least_worker: str
    most_worker: str


class LateHost(msgspec.Struct, frozen=True):
    """A host with several ranks, of which one is listed under `stragglers`; only where there are several hosts.

    ranks     how many of its ranks are compared
    cost_ns   per step: of all of them together if they are late together, else of the one that costs most
    """

    host: str
    ranks: int
    cost_ns: float
    together: bool


class GroupFamily(msgspec.Struct, frozen=True):
    """Process groups that divide the job in one way; times are sums over all their ranks, the whole recording.

    label     their description or name, else their size and spacing
    groups    how many; complete: of these, those of which every rank is compared
    size      ranks of the largest
    names     the collectives, most calls first, at most six; collectives: how many, matched across ranks
    slowest_group, slowest_ranks, slowest_waiting_ns  the group whose ranks wait most, and its ranks in short; null
              if nothing was compared
    """

    label: str
    groups: int
    complete: int
    size: int
    backends: list[str]
    names: list[str]
    collectives: int
    compared: int
    latency_ns: int | None
    transfer_ns: int | None
    waiting_ns: int | None
    exposed_ns: int | None
    slowest_group: int | None
    slowest_ranks: str | None
    slowest_waiting_ns: int | None


class MapParams(msgspec.Struct, frozen=True):
    """What the map shows of which ranks.

    show  late: after the median arrival; computation; exposed: exposed communication; other: neither
    by    what stands together in a column: rank, host, or the label of a family of process groups (the place in
          the group)
    mark   a worker: the answer says in which column it is
    begin, end  the part [begin, end) of these in their order, null: to the last
    """

    show: MapValue = "late"
    by: str = "rank"
    mark: str = ""
    begin: Annotated[int, msgspec.Meta(ge=0)] = 0
    end: Annotated[int, msgspec.Meta(ge=0)] | None = None


class MapColumn(msgspec.Struct, frozen=True):
    """Ranks that stand together.

    first, last  positions among all that `by` tells apart
    worst_worker  the first rank with the greatest value, null where nothing is known
    """

    label: str
    first: int
    last: int
    ranks: int
    worst_worker: str | None
    worst_rank: int | None


class RankMap(msgspec.Struct, frozen=True):
    """At most 256 columns and 64 rows of maxima: a cell is the greatest value of its ranks in its steps.

    rows      names of steps, "40" or "40-43"
    cells_ns  a list per row with a cell per column, null where nothing is known
    marked    position of the column with the worker that is asked for, null if it is in none
    count     how many hosts, ranks, or places there are in all; choices: what `by` can be
    """

    columns: list[MapColumn]
    rows: list[str]
    cells_ns: list[list[int | None]]
    marked: int | None
    count: int
    choices: list[str]
    reasons: Mapping[str, Text]
