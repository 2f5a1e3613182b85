"""Ranks and steps as a map of few cells, each of which shows the greatest of what it joins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.comparison import Comparison
from torch_tb_profiler.analyses.distributed.steps import StepColumns
from torch_tb_profiler.analyses.distributed.stragglers import lateness_cells
from torch_tb_profiler.analyses.shared.optional import optional_ints
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Int64

MOST_COLUMNS, MOST_ROWS = 256, 64

Shown = Literal["late", "computation", "exposed", "other"]


class Column(msgspec.Struct, frozen=True):
    """Ranks that stand together.

    first, last  the keys that it joins, positions among the distinct keys
    ranks   how many ranks
    worst   position of the first rank with the greatest value of the column, None if nothing is known
    """

    first: int
    last: int
    ranks: int
    worst: int | None


class Maxima(msgspec.Struct, frozen=True):
    """A column per some ranks, a row per some steps that follow each other.

    keys   the distinct keys, ascending, of which a part may be shown
    steps  [first, last] name of each row
    cells  a list per row with a cell per column: ns, None where nothing is known
    """

    keys: list[int]
    columns: list[Column]
    steps: list[tuple[str, str]]
    cells: list[list[int | None]]


def shown_cells(comparison: Comparison, columns: StepColumns, shown: Shown) -> Int64:
    """int64[ranks, steps] ns, ABSENT where unknown."""
    if shown == "late":
        return lateness_cells(comparison)
    values = {
        "computation": columns.computation + columns.overlap,
        "exposed": columns.exposed,
        "other": columns.other,
    }[shown]
    cells = np.full((len(comparison.sources), len(comparison.job.steps)), ABSENT)
    np.maximum.at(cells, (columns.member, columns.step), values)
    return cells


def maxima(cells: Int64, names: Sequence[str], keys: Int64, begin: int = 0, end: int | None = None) -> Maxima:
    """Of the ranks whose key is one of the distinct keys [begin, end), in their order.

    cells  int64[ranks, steps]; names: of the steps
    keys   int64[ranks]  ranks of equal keys stand together; those of NO_CODE are left out
    """
    distinct, which = np.unique(keys[keys != NO_CODE], return_inverse=True)
    member = np.flatnonzero(keys != NO_CODE)
    kept = np.arange(len(distinct))[begin:end]
    if len(kept) == 0:
        return Maxima(distinct.tolist(), [], [], [])
    inside = (which >= kept[0]) & (which <= kept[-1])
    member, which = member[inside], which[inside] - kept[0]
    used = np.flatnonzero((cells[member] != ABSENT).any(axis=0))
    across, columns = _bins(len(kept), MOST_COLUMNS)
    down, rows = _bins(len(used), MOST_ROWS)
    joined = np.full((columns, rows), ABSENT)
    np.maximum.at(joined, (across[which][:, None], down[None, :]), cells[np.ix_(member, used)])
    spans = [np.flatnonzero(across == column) for column in range(columns)]
    worst = _worst(cells[np.ix_(member, used)].max(axis=1, initial=ABSENT), member, across[which], columns)
    counts = np.bincount(across[which], minlength=columns).tolist()
    return Maxima(
        keys=distinct.tolist(),
        columns=[
            Column(int(kept[span[0]]), int(kept[span[-1]]), counts[at], worst[at]) for at, span in enumerate(spans)
        ],
        steps=[
            (names[used[span[0]]], names[used[span[-1]]])
            for span in (np.flatnonzero(down == row) for row in range(rows))
        ],
        cells=[optional_ints(row) for row in joined.T],
    )


def _bins(count: int, most: int) -> tuple[Int64, int]:
    """(int64[count] the bin of each, how many bins): as even as possible, in order."""
    bins = min(count, most)
    return np.arange(count) * bins // max(count, 1), bins


def _worst(greatest: Int64, member: Int64, column: Int64, count: int) -> list[int | None]:
    """The first rank with the greatest value of each column."""
    order = np.lexsort((member, -greatest, column))
    first = np.searchsorted(column[order], np.arange(count))
    known = greatest[order][first] != ABSENT
    chosen = member[order][first]
    return [int(rank) if here else None for rank, here in zip(chosen, known, strict=True)]
