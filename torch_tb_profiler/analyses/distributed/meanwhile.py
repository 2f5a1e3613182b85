"""What a late rank did while the others waited, beside the rank that arrived in the middle."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.comparison import Comparison
from torch_tb_profiler.analyses.distributed.job import Job, JobTable
from torch_tb_profiler.analyses.distributed.stragglers import Straggler
from torch_tb_profiler.analyses.shared.breakdown import CATEGORIES
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Int64

EXPLAINED = 3
"""Of this many ranks it is shown what they did meanwhile."""

MOST_LATENESS = 0.9
"""It is shown for the collectives that make up this share of a rank's lateness."""


class RankTime(msgspec.Struct, frozen=True):
    """ns of one name: of the late rank, and of the median rank (None where it is not among that one's largest)."""

    name: str
    time: int
    median: int | None

    @property
    def excess(self) -> int:
        """ns that the late rank spends more."""
        return self.time - (self.median or 0)


class Meanwhile(msgspec.Struct, frozen=True):
    """Sums over the windows before the collectives where a rank arrived last; ns.

    collectives  how many count; steps: in how many steps they lie; latest: the one where the rank was latest
    window, median_window  of the late and of the median rank
    categories   of the overview, in their order
    host, kernels  largest excess first
    """

    member: int
    collectives: int
    steps: int
    latest: int
    window: int
    median_window: int
    categories: list[RankTime]
    host: list[RankTime]
    kernels: list[RankTime]


def meanwhile(comparison: Comparison, stragglers: Sequence[Straggler]) -> list[Meanwhile]:
    """Of the ranks with the most delay, as far as a window before their late arrivals is recorded."""
    rows = [_of_rank(comparison, row.member) for row in stragglers[:EXPLAINED] if row.delay > 0]
    return [row for row in rows if row is not None]


def _of_rank(comparison: Comparison, member: int) -> Meanwhile | None:
    """Of the collectives where this rank arrived last and both windows are known, those that make up MOST_LATENESS
    of its lateness; None without any. Where windows of different groups overlap, the latest arrival counts."""
    table, arrivals = comparison.job.table, comparison.arrivals
    middle_of = np.full(len(comparison.matching), NO_CODE)
    middle_rows = np.flatnonzero(arrivals.middle)
    middle_of[comparison.matching.instance[middle_rows]] = middle_rows
    collectives = np.flatnonzero(arrivals.attributable)
    collectives = collectives[table.member[arrivals.last[collectives]] == member]
    last, middle = arrivals.last[collectives], middle_of[collectives]
    both = (table.window[last] != ABSENT) & (table.window[middle] != ABSENT)
    collectives, last, middle = collectives[both], last[both], middle[both]
    chosen = _apart(table, last, _latest(arrivals.lateness[last]))
    if len(chosen) == 0:
        return None
    rank, median = _WindowSums(comparison.job), _WindowSums(comparison.job)
    for i in chosen.tolist():
        rank.add(int(last[i]))
        median.add(int(middle[i]))
    categories = zip(CATEGORIES, rank.categories.tolist(), median.categories.tolist(), strict=True)
    return Meanwhile(
        member=member,
        collectives=len(chosen),
        steps=len(np.unique(table.step[last[chosen]])),
        latest=int(collectives[chosen[0]]),
        window=rank.total,
        median_window=median.total,
        categories=[RankTime(*row) for row in categories],
        host=_beside(rank.host, median.host),
        kernels=_beside(rank.kernels, median.kernels),
    )


def _beside(times: Mapping[str, int], medians: Mapping[str, int]) -> list[RankTime]:
    rows = [RankTime(name, time, medians.get(name)) for name, time in times.items()]
    return sorted(rows, key=lambda row: -row.excess)


def _latest(lateness: Int64) -> Int64:
    """Positions of the largest that make up MOST_LATENESS of the sum, largest first."""
    order = np.argsort(-lateness, kind="stable")
    reached = np.cumsum(lateness[order])
    return order[: int(np.searchsorted(reached, MOST_LATENESS * reached[-1])) + 1] if len(order) else order


def _apart(table: JobTable, rows: Int64, order: Int64) -> Int64:
    """Those of these positions in rows whose windows do not overlap; the first ones take precedence."""
    ends = table.start[rows]
    begins = ends - table.window[rows]
    taken: list[tuple[int, int]] = []
    chosen = []
    for i in order.tolist():
        window = int(begins[i]), int(ends[i])
        at = bisect(taken, window)
        free = at == len(taken) or taken[at][0] >= window[1]
        if free and (at == 0 or taken[at - 1][1] <= window[0]):
            taken.insert(at, window)
            chosen.append(i)
    return np.array(chosen, np.int64)


class _WindowSums:
    """Sums over what came before some operations."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.total = 0
        self.categories = np.zeros(len(CATEGORIES), np.int64)
        self.host: dict[str, int] = {}
        self.kernels: dict[str, int] = {}

    def add(self, row: int) -> None:
        """Count one operation."""
        summary = self._job.source_of(row).summary
        cell, names = summary.table()[self._job.table.row[row]], summary.names
        self.total += int(cell["window"])
        self.categories += cell["categories"]
        for sums, codes, times in (
            (self.host, cell["host"], cell["host_ns"]),
            (self.kernels, cell["kernels"], cell["kernel_ns"]),
        ):
            for code, time in zip(codes.tolist(), times.tolist(), strict=True):
                if code >= 0:
                    sums[names[code]] = sums.get(names[code], 0) + time
