"""The map of maxima: ranks, hosts, or places in a family of process groups, by step."""

from __future__ import annotations

from collections.abc import Mapping

from torch_tb_profiler.analyses.distributed.comparison import RankComparison
from torch_tb_profiler.analyses.distributed.heat_map import (
    BinnedCells,
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
from torch_tb_profiler.views.distributed import columns
from torch_tb_profiler.views.distributed.payload.scale import MapColumn, MapParams, RankMap
from torch_tb_profiler.views.distributed.reasons import reasons


def build(members: Members[RankSummary], params: MapParams) -> RankMap:
    """NotFoundError for an order that the job does not have."""
    comparison, orders = compare_members(members), _orders(members)
    if params.by not in orders:
        raise NotFoundError(f"the ranks have no {params.by!r}", hint=f"one of {', '.join(orders)}")
    keys = orders[params.by]
    shown = bin_cells(
        map_values(comparison, columns.steps_of(members), params.show),
        comparison.job.steps,
        keys.values,
        params.begin,
        params.end,
    )
    return RankMap(
        columns=[_column(comparison, shown, keys, column) for column in shown.columns],
        rows=[first if first == last else f"{first}-{last}" for first, last in shown.steps],
        cells_ns=shown.cells,
        marked=_marked(comparison, shown, keys, params.mark),
        count=len(shown.keys),
        choices=list(orders),
        reasons=reasons(comparison),
    )


@derived
def _orders(members: Members[RankSummary]) -> Mapping[str, RankOrder]:
    return rank_orders(compare_members(members), columns.dimensions_of(members))


def _marked(comparison: RankComparison, shown: BinnedCells, keys: RankOrder, worker: str) -> int | None:
    key = int(keys.values[comparison.positions[worker]]) if worker in comparison.positions else None
    marked = (
        at
        for at, column in enumerate(shown.columns)
        if key is not None and shown.keys[column.first] <= key <= shown.keys[column.last]
    )
    return next(marked, None)


def _column(comparison: RankComparison, shown: BinnedCells, keys: RankOrder, column: RankBin) -> MapColumn:
    first, last = (keys.names[shown.keys[at]] for at in (column.first, column.last))
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
    build,
    RANK_SUMMARIES,
    rows="columns",
    answers="Which ranks are late, and in which steps: at most 256 x 64 maxima, whatever the size of the job.",
)
