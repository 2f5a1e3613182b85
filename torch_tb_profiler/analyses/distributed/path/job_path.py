"""The critical path of a job: along the chains of a rank, and at each collective to the rank that arrives last.

    rank 0  |work|- waits -|== transfer ==|work|    path: rank 1's data and work, the transfer, rank 0's work
    rank 1  |-- data --|work|= transfer ==|wo|

Each piece is measured on the clock of its own rank; where the path changes ranks, the end that they share joins
them.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.comparison import Comparison
from torch_tb_profiler.analyses.distributed.path.rank_path import RankPath
from torch_tb_profiler.analyses.schedule.categories import CATEGORIES
from torch_tb_profiler.analyses.schedule.chains import UNKNOWN
from torch_tb_profiler.model.trace import NO_CODE, Int64

_COMMUNICATION = CATEGORIES.index("communication")


class Leg(msgspec.Struct, frozen=True):
    """A stay of the path on one rank, within one of its steps.

    member      its position in the job's sources
    begin, end  ns since that rank's trace began, on its host's clock
    step        number among that rank's complete steps, of the leg's end
    times       ns by CATEGORIES, which sum to end - begin
    operation   row of the job's table: the collective that the leg ends with, which another rank waited for;
                NO_CODE where the path stays, in the next step, or ends
    """

    member: int
    begin: int
    end: int
    step: int
    times: tuple[int, ...]
    operation: int


class JobPath(msgspec.Struct, frozen=True):
    """legs    in order of time; the path of the rank alone if no collective of the device is recorded
    steps   complete steps of the rank that the path ends on
    joined  some collective is work of a device, so that the path can change ranks
    """

    legs: tuple[Leg, ...]
    steps: int
    joined: bool


def job_path(comparison: Comparison, paths: Sequence[RankPath]) -> JobPath:
    """`paths`: of each of the job's sources. Without a complete step on any rank, no leg."""
    walk = _Walk(comparison, paths)
    member = walk.last_to_end()
    if member is None:
        return JobPath((), 0, False)
    joined = any((walk.operations(at) != UNKNOWN).any() for at in range(len(paths)))
    return JobPath(tuple(reversed(walk.legs(member))), paths[member].steps, joined)


class _Walk:
    def __init__(self, comparison: Comparison, paths: Sequence[RankPath]) -> None:
        self.comparison = comparison
        self.chains = [path.chains() for path in paths]
        self.steps = [path.steps for path in paths]
        # The rows of a rank lie together, in the order of its own summary.
        self.first = np.searchsorted(comparison.job.table.member, np.arange(len(paths))).tolist()

    def operations(self, member: int) -> Int64:
        """The sources of a rank's operations."""
        return self.chains[member].source[: len(self.chains[member].source) - self.steps[member] - 1]

    def last_to_end(self) -> int | None:
        """The rank whose last complete step ends last, of those on the job's clock if any is."""
        shift, known = self.comparison.clocks.shifts()
        ends = [
            (bool(known[at]), int(chain.end[-1]) + int(shift[at]), at)
            for at, chain in enumerate(self.chains)
            if self.steps[at]
        ]
        return max(ends)[2] if ends else None

    def legs(self, member: int) -> list[Leg]:
        """From the latest to the earliest."""
        legs: list[Leg] = []
        node, operation, times = len(self.chains[member].end) - 1, NO_CODE, np.zeros(len(CATEGORIES), np.int64)
        end = int(self.chains[member].end[-1])
        while True:
            chain = self.chains[member]
            times = times + chain.times[node]
            source, begin = int(chain.source[node]), int(chain.begin[node])
            ends = source < 0 or chain.source[source] == UNKNOWN
            collective = not ends and source < len(self.operations(member))
            late = self._last_to_arrive(member, source) if collective else None
            if collective and late is None:
                times[_COMMUNICATION] += begin - int(chain.end[source])
                node = source
                continue
            if begin < end:
                legs.append(Leg(member, begin, end, self._step(member, end), tuple(times.tolist()), operation))
            if ends:
                return legs
            if late is None:  # a step begins
                node, operation, end, times = source, NO_CODE, begin, np.zeros(len(CATEGORIES), np.int64)
                continue
            member, node, operation = late
            table, arrived = self.comparison.job.table, int(self.chains[member].end[node])
            end = arrived + int(table.end[operation] - table.start[operation])
            times = np.zeros(len(CATEGORIES), np.int64)
            times[_COMMUNICATION] = end - arrived

    def _last_to_arrive(self, member: int, node: int) -> tuple[int, int, int] | None:
        """(member, node, row of the job's table) of another rank that arrived last; None if none is known to."""
        arrivals, table = self.comparison.arrivals, self.comparison.job.table
        collective = self.comparison.matching.instance[self.first[member] + node]
        last = int(arrivals.last[collective])
        if last < 0 or arrivals.cut[collective] or table.member[last] == member:
            return None
        other = int(table.member[last])
        at = last - self.first[other]
        return None if self.chains[other].source[at] == UNKNOWN else (other, at, last)

    def _step(self, member: int, time: int) -> int:
        """The complete step of a rank that a time lies in."""
        begins = self.chains[member].end[len(self.operations(member)) : -1]
        return max(int(np.searchsorted(begins, time, "left")) - 1, 0)


def rank_times(path: JobPath, members: int) -> Int64:
    """int64[members, len(CATEGORIES)]: ns of the path on each rank by category."""
    times = np.zeros((members, len(CATEGORIES)), np.int64)
    for leg in path.legs:
        times[leg.member] += np.array(leg.times, np.int64)
    return times
