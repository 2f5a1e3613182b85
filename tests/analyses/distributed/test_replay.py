"""The job replayed with some of its work shorter, against the same rules for one operation after another."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from msgspec.structs import replace

from tests.support.jobs import Job as Drawn
from tests.support.jobs import ddp, pipeline, tensor_and_data_parallel
from torch_tb_profiler.analyses.distributed.comparison import RankComparison
from torch_tb_profiler.analyses.distributed.replay import ReplayScenarios, replay_job, replay_levels
from torch_tb_profiler.analyses.distributed.work_windows import WorkWindows, work_windows
from torch_tb_profiler.model.trace import NO_CODE, Int64
from torch_tb_profiler.views._shared.job.members import compare_members

JOBS = {
    "ddp": Drawn(4, ddp(4), straggler=2),
    "tensor and data parallel": Drawn(8, tensor_and_data_parallel(8, 2), straggler=5, slow_us=900.0),
    "pipeline": Drawn(4, pipeline(4), straggler=1),
    "one file lacks an operation": Drawn(2, ddp(2), straggler=1, lost=frozenset({(1, 1)})),
}


class OneByOne:
    """One what-if: `usual` ranks work as long as usual, collectives end sooner by `sooner` ns."""

    def __init__(self, comparison: RankComparison, own: WorkWindows, usual: set[int], sooner: Int64) -> None:
        self.own, self.usual, self.sooner = own, usual, sooner
        table, split = comparison.job.table, comparison.split
        self.member, self.start, self.end = (
            each[own.rows].tolist() for each in (table.member, table.start, table.end)
        )
        self.compared = split.compared[own.rows].tolist()
        self.instance = comparison.matching.instance[own.rows].tolist()
        self.waited = [int(split.waiting[row]) if split.compared[row] else 0 for row in own.rows.tolist()]
        self.ends: dict[int, int] = {}
        self.stalls: dict[int, list[tuple[int, int, int]]] = {}  # rank: (end, resumed earlier by, saved before it)
        self.arrivals = [0] * len(comparison.sources)
        for operations in self.in_turn():
            self.replay(operations)
        self.earlier = [
            self.moved(rank, 2**62, self.saved(rank, 2**62)) for rank in range(len(comparison.sources))
        ]

    def in_turn(self) -> Iterator[list[int]]:
        """The operations of one collective after the other, when all its ranks have come to it."""
        left = {rank: sorted(self.of(rank), key=self.end.__getitem__) for rank in set(self.member)}
        while any(left.values()):
            heads = {i for rest in left.values() for i in rest[:1]}
            for i in heads:
                joined = [i]
                if self.compared[i]:
                    joined = [
                        k
                        for k, instance in enumerate(self.instance)
                        if instance == self.instance[i] and self.compared[k]
                    ]
                if heads.issuperset(joined):
                    break
            for k in joined:
                left[self.member[k]].remove(k)
            yield joined

    def of(self, rank: int) -> list[int]:
        return [i for i, member in enumerate(self.member) if member == rank]

    def saved(self, rank: int, time: int) -> int:
        """By the operations that start until then."""
        excess = self.own.excess.tolist()
        return sum(excess[i] for i in self.of(rank) if self.start[i] <= time) if rank in self.usual else 0

    def moved(self, rank: int, time: int, saved: int) -> int:
        ended = [stall for stall in self.stalls.get(rank, []) if stall[0] <= time]
        return saved + (max(ended)[1] - max(ended)[2] if ended else 0)

    def replay(self, operations: list[int]) -> None:
        reached = {}
        for i in operations:
            rank, slack, previous = self.member[i], int(self.own.slack[i]), int(self.own.previous[i])
            moved = self.moved(rank, self.start[i] - slack, self.saved(rank, self.start[i])) + slack
            if previous >= 0:
                moved = min(moved, self.ends[previous] + self.start[i] - self.end[previous])
            reached[i] = moved
            if len(operations) > 1 and self.waited[i] == 0:
                self.arrivals[rank] += moved
        ended = min(reached[i] + self.waited[i] for i in operations)
        if self.compared[operations[0]]:
            ended += int(self.sooner[self.instance[operations[0]]])
        for i in operations:
            self.ends[i] = ended
            rank, stall = self.member[i], int(self.own.stall[i])
            if stall > 0:
                began = self.end[i] - stall
                saved = self.saved(rank, began)
                resumed = min(self.moved(rank, began, saved) + stall, ended)
                self.stalls.setdefault(rank, []).append((self.end[i], resumed, saved))


def roughened(comparison: RankComparison, own: WorkWindows) -> WorkWindows:
    """With stalls, slack and operations previous others wherever they can be."""
    dice, table = np.random.default_rng(7), comparison.job.table
    start, end, member = (each[own.rows] for each in (table.start, table.end, table.member))
    previous = own.previous.copy()
    for i in range(1, len(start)):
        earlier = np.flatnonzero((member[:i] == member[i]) & (end[:i] <= start[i]))
        previous[i] = dice.choice(earlier) if len(earlier) and dice.random() < 0.7 else NO_CODE
    some = dice.random((2, len(start))) < 0.6
    stall = np.where(some[0], dice.integers(1, np.maximum(end - start, 2)), 0)
    slack = np.where(some[1], dice.integers(0, 2_000_000, len(start)), 0)
    return replace(own, previous=previous, stall=stall, slack=slack)


@pytest.mark.parametrize("rough", [False, True], ids=["as recorded", "rough"])
@pytest.mark.parametrize("name", JOBS)
def test_all_what_ifs_at_once_are_each_of_them_alone(name: str, rough: bool) -> None:
    comparison = compare_members(JOBS[name].members())
    own, ranks = work_windows(comparison.job), len(comparison.sources)
    own = roughened(comparison, own) if rough else own
    sets = [{rank} for rank in range(ranks)] + [set(range(ranks)), {0, ranks - 1}, set()]
    usual = np.array([[rank in each for each in sets] for rank in range(ranks)])
    sooner = np.zeros((len(comparison.matching), len(sets)), np.int64)
    sooner[::3, -1] = 70_000
    sooner[1::2, 0] = 40_000
    sooner[-1] = 30_000
    replayed = replay_job(
        comparison.job, comparison.matching, comparison.split, own, ReplayScenarios(usual, sooner)
    )
    for column, each in enumerate(sets):
        alone = OneByOne(comparison, own, each, sooner[:, column])
        assert replayed.earlier[:, column].tolist() == alone.earlier
        assert replayed.arrivals[:, column].tolist() == alone.arrivals
    assert replayed.earlier.any() and replayed.arrivals.any()


def test_the_computation_goes_on_after_the_stall_that_ends_last_whichever_began_last() -> None:
    comparison = compare_members(JOBS["ddp"].members())
    table = comparison.job.table
    end, last = table.end.copy(), np.flatnonzero(np.diff(table.member, append=NO_CODE))
    end[last - 1] = end[last] + 1_000_000
    job = replace(comparison.job, table=replace(table, end=end))
    own = work_windows(job)
    stall = own.stall.copy()
    stall[last - 1], stall[last] = 500_000, 20_000
    own = replace(own, stall=stall)
    usual = np.eye(4, dtype=np.bool_)
    replayed = replay_job(job, comparison.matching, comparison.split, own, ReplayScenarios(usual))
    none = np.zeros(len(comparison.matching), np.int64)
    for rank in range(4):
        alone = OneByOne(replace(comparison, job=job), own, {rank}, none)
        assert replayed.earlier[:, rank].tolist() == alone.earlier


def test_what_an_operation_depends_on_is_in_a_wave_before() -> None:
    """Ranks 0 and 1 reduce, then both with rank 2, which comes with nothing before."""
    member, collective = np.array([0, 0, 1, 1, 2]), np.array([7, 3, 7, 3, 3])
    waves = replay_levels(member, collective, np.arange(5))
    assert waves.order.tolist() == [0, 2, 1, 3, 4]
    assert waves.bounds.tolist() == [0, 2, 5] and waves.runs.tolist() == [0, 2]
    assert waves.run.tolist() == [0, 1, 0, 1, 1, 2]


def test_where_ranks_disagree_on_the_order_each_operation_has_its_turn_all_the_same() -> None:
    """None is due: the first rank's operation goes alone, then the next one's, of the same collective."""
    member, collective = np.array([0, 1, 1, 2, 2]), np.array([0, 0, 1, 1, 0])
    waves = replay_levels(member, collective, np.arange(5))
    assert waves.order.tolist() == [0, 1, 2, 3, 4]
    assert waves.bounds.tolist() == [0, 1, 2, 4, 5] and waves.runs.tolist() == [0, 1, 2, 4]
    assert waves.run.tolist() == [0, 1, 2, 2, 3, 4]


def test_a_job_without_operations_has_no_waves() -> None:
    none = np.empty(0, np.int64)
    waves = replay_levels(none, none, none)
    assert (waves.order.tolist(), waves.bounds.tolist(), waves.run.tolist()) == ([], [0], [0])
