"""Values by rank and step as a heat map with a bounded number of cells, each the maximum of what it joins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.comparison import RankComparison
from torch_tb_profiler.analyses.distributed.groups import ParallelDimension
from torch_tb_profiler.analyses.distributed.steps import StepColumns
from torch_tb_profiler.analyses.shared.payload_values import optional_ints
from torch_tb_profiler.base.format import natural_sort_key
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Int64

MAX_COLUMNS, MAX_ROWS = 256, 64

MapValue = Literal["late", "computation", "exposed", "other"]


def map_values(comparison: RankComparison, columns: StepColumns, shown: MapValue) -> Int64:
    """Return int64[ranks, steps], the ns of the chosen value, ABSENT where unknown."""
    if shown == "late":
        return _sum_lateness(comparison)
    values = {
        "computation": columns.computation + columns.overlap,
        "exposed": columns.exposed,
        "other": columns.other,
    }[shown]
    cells = np.full((len(comparison.sources), len(comparison.job.steps)), ABSENT)
    np.maximum.at(cells, (columns.member, columns.step), values)
    return cells


class LatenessByStep(msgspec.Struct, frozen=True):
    """Lateness in ns after the median arrival of the others, summed over a step's collectives.

    steps  the steps in which arrivals were compared
    rows   for each rank one sum per step, None where nothing was compared
    """

    steps: list[str]
    rows: list[list[int | None]]


def lateness_by_step(comparison: RankComparison) -> LatenessByStep | None:
    """Return the lateness of every rank by step, None if no arrivals were compared."""
    if not (comparison.arrivals.lateness != ABSENT).any():
        return None
    cells = _sum_lateness(comparison)
    known = np.flatnonzero((cells != ABSENT).any(axis=0))
    return LatenessByStep(
        [comparison.job.steps[code] for code in known.tolist()], [optional_ints(row) for row in cells[:, known]]
    )


def _sum_lateness(comparison: RankComparison) -> Int64:
    """Return int64[ranks, steps] ns, ABSENT where nothing was compared."""
    job, arrivals = comparison.job, comparison.arrivals
    table = job.table
    shape = len(job.sources), len(job.steps)
    rows = np.flatnonzero((arrivals.lateness != ABSENT) & (table.step >= 0))
    cell = table.member[rows].astype(np.int64) * shape[1] + table.step[rows]
    sums = np.zeros(shape[0] * shape[1], np.int64)
    np.add.at(sums, cell, arrivals.lateness[rows])
    compared = np.bincount(cell, minlength=len(sums)) > 0
    return np.where(compared, sums, ABSENT).reshape(shape)


# ---- columns and bins -----------------------------------------------------------------------------------


class RankOrder(msgspec.Struct, frozen=True):
    """An order of the ranks; ranks of equal keys are joined.

    values  int64[ranks]  the key of each rank, NO_CODE if it has none
    names   what each key is called
    """

    values: Int64
    names: list[str]


def rank_orders(comparison: RankComparison, dimensions: Sequence[ParallelDimension]) -> dict[str, RankOrder]:
    """Return the orders by rank, by host (of several), and by place in each dimension of several groups."""
    sources = comparison.sources
    ranks = [source.worker if source.rank is None else str(source.rank) for source in sources]
    orders = {"rank": RankOrder(np.arange(len(sources)), ranks)}
    hosts = sorted({source.host for source in sources if source.host is not None}, key=natural_sort_key)
    if len(hosts) > 1:
        codes = {host: code for code, host in enumerate(hosts)}
        values = [NO_CODE if source.host is None else codes[source.host] for source in sources]
        orders["host"] = RankOrder(np.array(values, np.int64), hosts)
    for dimension in dimensions:
        if len(dimension.groups) > 1:
            places = range(int(dimension.place.max(initial=NO_CODE)) + 1)
            orders.setdefault(dimension.label, RankOrder(dimension.place, [str(place) for place in places]))
    return orders


class RankBin(msgspec.Struct, frozen=True):
    """A column of the heat map: ranks that are joined.

    first, last  the keys that it joins, indices into the distinct keys
    ranks   number of ranks
    worst   index of the first rank with the largest value of the column, None if nothing is known
    """

    first: int
    last: int
    ranks: int
    worst: int | None


class BinnedCells(msgspec.Struct, frozen=True):
    """A heat map with a column per bin of ranks and a row per bin of consecutive steps.

    keys   the distinct keys, ascending, of which only a part may be shown
    steps  (first, last) step name of each row
    cells  for each row a cell per column: ns, None where nothing is known
    """

    keys: list[int]
    columns: list[RankBin]
    steps: list[tuple[str, str]]
    cells: list[list[int | None]]


def bin_cells(
    cells: Int64, names: Sequence[str], keys: Int64, begin: int = 0, end: int | None = None
) -> BinnedCells:
    """Bin the ranks whose key is one of the distinct keys [begin, end), in the order of the keys.

    cells  int64[ranks, steps]; names: of the steps
    keys   int64[ranks]  ranks with equal keys are joined, ranks with NO_CODE left out
    """
    distinct, which = np.unique(keys[keys != NO_CODE], return_inverse=True)
    member = np.flatnonzero(keys != NO_CODE)
    chosen = np.arange(len(distinct))[begin:end]
    if len(chosen) == 0:
        return BinnedCells(distinct.tolist(), [], [], [])
    inside = (which >= chosen[0]) & (which <= chosen[-1])
    member, which = member[inside], which[inside] - chosen[0]
    used = np.flatnonzero((cells[member] != ABSENT).any(axis=0))
    column_of, columns = _assign_even_bins(len(chosen), MAX_COLUMNS)
    row_of, rows = _assign_even_bins(len(used), MAX_ROWS)
    binned = np.full((columns, rows), ABSENT)
    np.maximum.at(binned, (column_of[which][:, None], row_of[None, :]), cells[np.ix_(member, used)])
    column_keys = [np.flatnonzero(column_of == column) for column in range(columns)]
    row_steps = [np.flatnonzero(row_of == row) for row in range(rows)]
    worst = _find_worst_ranks(
        cells[np.ix_(member, used)].max(axis=1, initial=ABSENT), member, column_of[which], columns
    )
    counts = np.bincount(column_of[which], minlength=columns).tolist()
    return BinnedCells(
        keys=distinct.tolist(),
        columns=[
            RankBin(int(chosen[span[0]]), int(chosen[span[-1]]), counts[column], worst[column])
            for column, span in enumerate(column_keys)
        ],
        steps=[(names[used[span[0]]], names[used[span[-1]]]) for span in row_steps],
        cells=[optional_ints(row) for row in binned.T],
    )


def _assign_even_bins(count: int, max_bins: int) -> tuple[Int64, int]:
    """Return (int64[count] the bin of each element, number of bins), as evenly as possible and in order."""
    bins = min(count, max_bins)
    return np.arange(count) * bins // max(count, 1), bins


def _find_worst_ranks(values: Int64, member: Int64, column: Int64, count: int) -> list[int | None]:
    """Return the first rank with the largest value of each column, None if nothing is known."""
    order = np.lexsort((member, -values, column))
    first = np.searchsorted(column[order], np.arange(count))
    known = values[order][first] != ABSENT
    worst = member[order][first]
    return [int(rank) if is_known else None for rank, is_known in zip(worst, known, strict=True)]
