"""What a late rank did while the others waited, beside the rank that works as long as usual."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.comparison import Comparison
from torch_tb_profiler.analyses.distributed.costs.own_work import OwnWork
from torch_tb_profiler.analyses.distributed.job import Job, Windows
from torch_tb_profiler.analyses.shared.breakdown import CATEGORIES
from torch_tb_profiler.analyses.shared.grouping import split_by
from torch_tb_profiler.model.trace import NO_CODE, Int64

_COMMUNICATION = CATEGORIES.index("communication")

MOST_EXCESS = 0.95
"""It is shown for the windows that make up this share of what a rank works longer than usual."""


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
    """Sums over the windows in which a rank worked longer than usual; ns.

    collectives  how many windows count; steps: in how many steps they lie; latest: the one with the most excess
    window, median_window  how long the late and the median rank worked in them, without stalls for communication;
                 excess: of its own work over the usual
    categories   of the overview, in their order
    host, frames, kernels  largest excess first; frames: Python frames of the user's code
    short_names  of the late rank's kernels: name -> short name
    """

    member: int
    collectives: int
    steps: int
    latest: int
    window: int
    median_window: int
    excess: int
    categories: list[RankTime]
    host: list[RankTime]
    frames: list[RankTime]
    kernels: list[RankTime]
    short_names: Mapping[str, str]


def meanwhile(comparison: Comparison, own: OwnWork, members: Sequence[int]) -> list[Meanwhile]:
    """Of these ranks, as far as they worked longer than usual."""
    others, before = _Others(comparison.job, own), Windows(comparison.job)
    rows = [_of_rank(comparison, own, others, before, member) for member in members]
    return [row for row in rows if row is not None]


def _of_rank(
    comparison: Comparison, own: OwnWork, others: _Others, before: Windows, member: int
) -> Meanwhile | None:
    """Of the windows that make up MOST_EXCESS of what the rank worked longer; None without any."""
    table = comparison.job.table
    mine = np.flatnonzero((table.member[own.rows] == member) & (own.excess > 0))
    chosen = mine[_largest(own.excess[mine])]
    if len(chosen) == 0:
        return None
    rank, median = _WindowSums(comparison.job, before), _WindowSums(comparison.job, before)
    for i in chosen.tolist():
        other = others.counterpart(i)
        rank.add(int(own.rows[i]), int(own.work[i]))
        median.add(int(own.rows[other]), int(own.work[other]))
    categories = zip(CATEGORIES, rank.categories.tolist(), median.categories.tolist(), strict=True)
    return Meanwhile(
        member=member,
        collectives=len(chosen),
        steps=len(np.unique(table.step[own.rows[chosen]])),
        latest=int(comparison.matching.instance[own.rows[chosen[0]]]),
        window=rank.total,
        median_window=median.total,
        excess=int(own.excess[chosen].sum()),
        categories=[RankTime(*row) for row in categories],
        host=_beside(rank.host, median.host),
        frames=_beside(rank.frames, median.frames),
        kernels=_beside(rank.kernels, median.kernels),
        short_names=before.details(member).short_names,
    )


class _Others:
    """The windows of all ranks by their numbers."""

    def __init__(self, job: Job, own: OwnWork) -> None:
        self._own = own
        self._member, self._kind, self._step = (
            column[own.rows] for column in (job.table.member, job.table.collective, job.table.step)
        )
        self._of = split_by(own.window, int(own.window.max(initial=NO_CODE)) + 1)

    def counterpart(self, i: int) -> int:
        """The same window of the rank that works as long as usual; where no other has it, the most usual one
        before a collective of that kind, of the other ranks in the step or else of its own."""
        same = self._of[self._own.window[i]]
        same = same[self._member[same] != self._member[i]]
        if len(same) == 0:
            alike = self._kind == self._kind[i]
            same = np.flatnonzero(alike & (self._member != self._member[i]) & (self._step == self._step[i]))
            same = same if len(same) else np.flatnonzero(alike)
        return int(same[np.abs(self._own.work[same] - self._own.usual[i]).argmin()])


def _beside(times: Mapping[str, int], medians: Mapping[str, int]) -> list[RankTime]:
    rows = [RankTime(name, time, medians.get(name)) for name, time in times.items()]
    return sorted(rows, key=lambda row: -row.excess)


def _largest(excess: Int64) -> Int64:
    """Positions of the largest that make up MOST_EXCESS of the sum, largest first."""
    order = np.argsort(-excess, kind="stable")
    reached = np.cumsum(excess[order])
    return order[: int(np.searchsorted(reached, MOST_EXCESS * reached[-1])) + 1] if len(order) else order


class _WindowSums:
    """Sums over what came before some operations."""

    def __init__(self, job: Job, before: Windows) -> None:
        self._job, self._before = job, before
        self.total = 0
        self.categories = np.zeros(len(CATEGORIES), np.int64)
        self.host: dict[str, int] = {}
        self.frames: dict[str, int] = {}
        self.kernels: dict[str, int] = {}

    def add(self, row: int, work: int) -> None:
        """Count one operation, without the time in which the rank stalled for communication."""
        cell, names = self._before.before(row), self._before.details(int(self._job.table.member[row])).names
        categories = cell["categories"].copy()
        stalled = min(int(self._job.table.window[row]) - work, int(categories[_COMMUNICATION]))
        categories[_COMMUNICATION] -= max(stalled, 0)
        self.total += int(categories.sum())
        self.categories += categories
        for sums, codes, times in (
            (self.host, cell["host"], cell["host_ns"]),
            (self.frames, cell["frames"], cell["frame_ns"]),
            (self.kernels, cell["kernels"], cell["kernel_ns"]),
        ):
            for code, time in zip(codes.tolist(), times.tolist(), strict=True):
                if code >= 0:
                    sums[names[code]] = sums.get(names[code], 0) + time
