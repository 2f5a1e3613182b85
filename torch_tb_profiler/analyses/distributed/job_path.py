"""The critical path of a job: along the chains of a rank, and at each collective to the rank that arrives last.

    rank 0  |work|- waits -|== transfer ==|work|    path: rank 1's data and work, the transfer, rank 0's work
    rank 1  |-- data --|work|= transfer ==|wo|

Each segment is measured on the clock of its own rank. Where the path changes ranks, the shared end of the
collective joins the segments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.comparison import RankComparison
from torch_tb_profiler.analyses.distributed.matching import ranks_without_times
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary, summarize_rank
from torch_tb_profiler.analyses.schedule.chains import UNKNOWN_SOURCE, DependencyChains, dependency_chains
from torch_tb_profiler.analyses.schedule.path import PATH_CATEGORIES
from torch_tb_profiler.analyses.schedule.step_spans import recorded_spans
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import NO_CODE, Int64, Trace

_COMMUNICATION = PATH_CATEGORIES.index("communication")

CHAIN_NODE = np.dtype(
    [("begin", "<i8"), ("end", "<i8"), ("source", "<i8"), ("times", "<i8", (len(PATH_CATEGORIES),))]
)


class RankPath(msgspec.Struct, frozen=True):
    """What one rank's trace contributes to the critical path of its job.

    step_names  of the complete steps
    nodes       bytes of an array of CHAIN_NODE, the fields of `DependencyChains`
    """

    summary: RankSummary
    step_names: tuple[str, ...]
    nodes: Annotated[bytes, CHAIN_NODE]

    @property
    def steps(self) -> int:
        return len(self.step_names)

    def chains(self) -> DependencyChains:
        """Return the nodes as columns (read-only)."""
        table = np.frombuffer(self.nodes, CHAIN_NODE)
        return DependencyChains(table["begin"], table["end"], table["source"], table["times"])


def reduce_path(trace: Trace) -> RankPath:
    """Reduce a trace to its chains and the summary by which ranks are matched."""
    links, count = dependency_chains(trace), recorded_spans(trace).begin.shape[1]
    table = np.zeros(len(links.begin), CHAIN_NODE)
    for name in ("begin", "end", "source", "times"):
        table[name] = getattr(links, name)
    return RankPath(summarize_rank(trace), tuple(steps(trace).names[:count]), table.tobytes())


class PathSegment(msgspec.Struct, frozen=True):
    """Part of the job's critical path spent on one rank within one step.

    member      the rank's index in the job's sources
    begin, end  ns since that rank's trace began, on its host's clock
    step        index among that rank's complete steps of the step that contains the end
    times       ns by CATEGORIES, which sum to end - begin
    operation   row of the job's table: the collective that ends the segment, for which another rank waited;
                NO_CODE if the path stays on the rank in the next step, or ends
    """

    member: int
    begin: int
    end: int
    step: int
    times: tuple[int, ...]
    operation: int


class JobPath(msgspec.Struct, frozen=True):
    """The critical path of a job.

    segments       in order of time
    steps          number of complete steps of the rank that the path ends on
    crosses_ranks  device work of some collective is recorded, so that the path can change ranks
    """

    segments: tuple[PathSegment, ...]
    steps: int
    crosses_ranks: bool


def job_path(comparison: RankComparison, paths: Sequence[RankPath]) -> JobPath:
    """Return the critical path from the path of each of the job's sources, empty without a complete step."""
    walk = _JobPathWalk(comparison, paths)
    member = walk.last_to_end()
    if member is None:
        return JobPath((), 0, False)
    crosses_ranks = any((walk.operation_sources(rank) != UNKNOWN_SOURCE).any() for rank in range(len(paths)))
    return JobPath(tuple(reversed(walk.segments(member))), paths[member].steps, crosses_ranks)


class _JobPathWalk:
    """Walks the critical path backwards through the chains of all ranks."""

    def __init__(self, comparison: RankComparison, paths: Sequence[RankPath]) -> None:
        self.comparison = comparison
        self.chains = [path.chains() for path in paths]
        self.steps = [path.steps for path in paths]
        # The rows of a rank are contiguous and in the order of its own summary.
        self.first_row = np.searchsorted(comparison.job.table.member, np.arange(len(paths))).tolist()

    def operation_sources(self, member: int) -> Int64:
        """Return the source nodes of a rank's operations."""
        return self.chains[member].source[: len(self.chains[member].source) - self.steps[member] - 1]

    def last_to_end(self) -> int | None:
        """Return the rank whose last complete step ends last, preferring ranks on the job's clock.

        One whose collectives have no times is never left for the rank that it waits for, so it is the last choice.
        """
        shift, known = self.comparison.clocks.shifts()
        untimed = ranks_without_times(self.comparison.job)
        ends = [
            (member not in untimed, bool(known[member]), int(chain.end[-1]) + int(shift[member]), member)
            for member, chain in enumerate(self.chains)
            if self.steps[member]
        ]
        return max(ends)[-1] if ends else None

    def segments(self, member: int) -> list[PathSegment]:
        """Return the path that ends on a rank, from the latest segment to the earliest."""
        segments: list[PathSegment] = []
        node, operation, times = (
            len(self.chains[member].end) - 1,
            NO_CODE,
            np.zeros(len(PATH_CATEGORIES), np.int64),
        )
        end = int(self.chains[member].end[-1])
        while True:
            chain = self.chains[member]
            times = times + chain.times[node]
            source, begin = int(chain.source[node]), int(chain.begin[node])
            path_starts = source < 0 or chain.source[source] == UNKNOWN_SOURCE
            is_collective = not path_starts and source < len(self.operation_sources(member))
            late = self._last_to_arrive(member, source) if is_collective else None
            if is_collective and late is None:
                times[_COMMUNICATION] += begin - int(chain.end[source])
                node = source
                continue
            if begin < end:
                step = self._step_at(member, end)
                segments.append(PathSegment(member, begin, end, step, tuple(times.tolist()), operation))
            if path_starts:
                return segments
            if late is None:  # a step begins
                node, operation, end, times = source, NO_CODE, begin, np.zeros(len(PATH_CATEGORIES), np.int64)
                continue
            member, node, operation = late
            table, arrived = self.comparison.job.table, int(self.chains[member].end[node])
            end = arrived + int(table.end[operation] - table.start[operation])
            times = np.zeros(len(PATH_CATEGORIES), np.int64)
            times[_COMMUNICATION] = end - arrived

    def _last_to_arrive(self, member: int, node: int) -> tuple[int, int, int] | None:
        """Return (member, node, row of the job's table) of the other rank that arrived last, None if unknown."""
        arrivals, table = self.comparison.arrivals, self.comparison.job.table
        collective = self.comparison.matching.instance[self.first_row[member] + node]
        last = int(arrivals.last[collective])
        if last < 0 or arrivals.late_recording[collective] or table.member[last] == member:
            return None
        other = int(table.member[last])
        other_node = last - self.first_row[other]
        return None if self.chains[other].source[other_node] == UNKNOWN_SOURCE else (other, other_node, last)

    def _step_at(self, member: int, time: int) -> int:
        """Return the complete step of a rank that contains `time`."""
        begins = self.chains[member].end[len(self.operation_sources(member)) : -1]
        return max(int(np.searchsorted(begins, time, "left")) - 1, 0)


def path_times_by_rank(path: JobPath, members: int) -> Int64:
    """Return int64[members, len(CATEGORIES)], the ns of the path on each rank by category."""
    times = np.zeros((members, len(PATH_CATEGORIES)), np.int64)
    for segment in path.segments:
        times[segment.member] += np.array(segment.times, np.int64)
    return times
