"""The map of a large job: maxima by step and by ranks, hosts, or places in a family of process groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from torch_tb_profiler.analyses.distributed.comparison import RankComparison
from torch_tb_profiler.analyses.distributed.heat_map import (
    BinnedCells,
    MapValue,
    RankBin,
    RankOrder,
    bin_cells,
    map_values,
    rank_orders,
)
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.view import Members, RunView
from torch_tb_profiler.views._shared.job.members import RANK_SUMMARIES, compare_members
from torch_tb_profiler.views._shared.text import Text
from torch_tb_profiler.views.distributed.communication import members_dimensions
from torch_tb_profiler.views.distributed.ranks import members_steps
from torch_tb_profiler.views.distributed.reasons import null_reasons


class MapParams(msgspec.Struct, frozen=True):
    """What the map shows of which ranks.

    show        late: time after the median arrival; computation; exposed: exposed communication; other: none
                of these
    by          what shares a column: rank, host, or the label of a family of process groups (the place in
                the group)
    mark        a worker whose column the answer names
    begin, end  the part [begin, end) of the columns' keys in their order, null: to the last
    """

    show: MapValue = "late"
    by: str = "rank"
    mark: str = ""
    begin: Annotated[int, msgspec.Meta(ge=0)] = 0
    end: Annotated[int, msgspec.Meta(ge=0)] | None = None


class MapColumn(msgspec.Struct, frozen=True):
    """Ranks that share a column.

    first, last   positions among all keys of `by`
    worst_worker  the first rank with the maximum, null if nothing is known
    """

    label: str
    first: int
    last: int
    ranks: int
    worst_worker: str | None
    worst_rank: int | None


class RankMap(msgspec.Struct, frozen=True):
    """At most 256 columns and 64 rows of maxima: a cell is the maximum of its ranks in its steps.

    rows      names of steps, "40" or "40-43"
    cells_ns  a list per row with a cell per column, null where nothing is known
    marked    position of the column with the worker `mark`, null if it is in none
    count     total number of hosts, ranks, or places; choices: what `by` can be
    """

    columns: list[MapColumn]
    rows: list[str]
    cells_ns: list[list[int | None]]
    marked: int | None
    count: int
    choices: list[str]
    reasons: Mapping[str, Text]


def build_map(members: Members[RankSummary], params: MapParams) -> RankMap:
    """Draw the map; NotFoundError for an order that the job doesn't have."""
    comparison, orders = compare_members(members), _orders(members)
    if params.by not in orders:
        raise NotFoundError(
            f"the map of this job can't be ordered by {params.by!r}", hint=f"one of {', '.join(orders)}"
        )
    order = orders[params.by]
    cells = bin_cells(
        map_values(comparison, members_steps(members), params.show),
        comparison.job.steps,
        order.values,
        params.begin,
        params.end,
    )
    return RankMap(
        columns=[_build_column(comparison, cells, order, column) for column in cells.columns],
        rows=[first if first == last else f"{first}-{last}" for first, last in cells.steps],
        cells_ns=cells.cells,
        marked=_find_marked_column(comparison, cells, order, params.mark),
        count=len(cells.keys),
        choices=list(orders),
        reasons=null_reasons(comparison),
    )


@derived
def _orders(members: Members[RankSummary]) -> Mapping[str, RankOrder]:
    return rank_orders(compare_members(members), members_dimensions(members))


def _find_marked_column(
    comparison: RankComparison, cells: BinnedCells, order: RankOrder, worker: str
) -> int | None:
    if worker not in comparison.positions:
        return None
    key = int(order.values[comparison.positions[worker]])
    marked = (
        index
        for index, column in enumerate(cells.columns)
        if cells.keys[column.first] <= key <= cells.keys[column.last]
    )
    return next(marked, None)


def _build_column(comparison: RankComparison, cells: BinnedCells, order: RankOrder, column: RankBin) -> MapColumn:
    first, last = (order.names[cells.keys[position]] for position in (column.first, column.last))
    worst = None if column.worst is None else comparison.sources[column.worst]
    return MapColumn(
        label=first if first == last else f"{first}-{last}",
        first=column.first,
        last=column.last,
        ranks=column.ranks,
        worst_worker=worst.worker if worst else None,
        worst_rank=worst.rank if worst else None,
    )


MAP = RunView(
    "distributed/map",
    "Map of the ranks",
    MapParams,
    RankMap,
    build_map,
    RANK_SUMMARIES,
    rows="columns",
    answers="Which ranks are late, and in which steps: at most 256 x 64 maxima, whatever the size of the job.",
)
