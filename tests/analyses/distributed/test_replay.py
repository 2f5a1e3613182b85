"""The replay of all scenarios at once, compared with replaying one operation after another by the same rules."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
import pytest
from msgspec.structs import replace

from tests.support.jobs import Job, ddp, pipeline, tensor_and_data_parallel
from tests.support.simulation.simulator import Delay, SimulatedKernel, Simulation
from tests.support.simulation.simulator import pipeline as pipeline_programs
from torch_tb_profiler.analyses.distributed.comparison import RankComparison
from torch_tb_profiler.analyses.distributed.network import replay_levels
from torch_tb_profiler.analyses.distributed.replay import JobReplay, ReplayScenarios
from torch_tb_profiler.analyses.distributed.work_windows import WorkWindows, previous_operations, work_windows
from torch_tb_profiler.model.trace import NO_CODE, Int64
from torch_tb_profiler.views._shared.job.members import compare_members, member_costs

JOBS = {
    "ddp": Job(4, ddp(4), straggler=2),
    "tensor and data parallel": Job(8, tensor_and_data_parallel(8, 2), straggler=5, slow_us=900.0),
    "pipeline": Job(4, pipeline(4), straggler=1),
    "one file lacks an operation": Job(2, ddp(2), straggler=1, lost=frozenset({(1, 1)})),
}


class SequentialReplay:
    """Replays one scenario: `typical` ranks work a typical time, collectives end earlier by `saving` ns."""

    def __init__(self, comparison: RankComparison, work: WorkWindows, typical: set[int], saving: Int64) -> None:
        self.work, self.typical, self.saving = work, typical, saving
        table, split = comparison.job.table, comparison.split
        self.member, self.start, self.end = (
            column[work.rows].tolist() for column in (table.member, table.start, table.end)
        )
        self.compared = split.compared[work.rows].tolist()
        self.instance = comparison.matching.instance[work.rows].tolist()
        self.waited = [int(split.waiting[row]) if split.compared[row] else 0 for row in work.rows.tolist()]
        self.ends: dict[int, int] = {}
        self.stalls: dict[int, list[tuple[int, int, int]]] = {}  # rank: (end, resumed earlier by, saved before it)
        self.arrivals = [0] * len(comparison.sources)
        for operations in self.in_order():
            self.replay(operations)
        self.earlier = [
            self.earlier_at(rank, 2**62, self.saved(rank, 2**62)) for rank in range(len(comparison.sources))
        ]

    def in_order(self) -> Iterator[list[int]]:
        """Yield the operations of one collective after the other, when all its ranks have come to it."""
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
        """Return the ns that the operations started by `time` save."""
        excess = self.work.excess.tolist()
        return sum(excess[i] for i in self.of(rank) if self.start[i] <= time) if rank in self.typical else 0

    def earlier_at(self, rank: int, time: int, saved: int) -> int:
        ended = [stall for stall in self.stalls.get(rank, []) if stall[0] <= time]
        return saved + (max(ended)[1] - max(ended)[2] if ended else 0)

    def replay(self, operations: list[int]) -> None:
        reached = {}
        for i in operations:
            rank, slack, previous = self.member[i], int(self.work.slack[i]), int(self.work.previous[i])
            earlier = self.earlier_at(rank, self.start[i] - slack, self.saved(rank, self.start[i])) + slack
            if previous >= 0:
                earlier = min(earlier, self.ends[previous] + self.start[i] - self.end[previous])
            reached[i] = earlier
            if len(operations) > 1 and self.waited[i] == 0:
                self.arrivals[rank] += earlier
        ended = min(reached[i] + self.waited[i] for i in operations)
        if self.compared[operations[0]]:
            ended += int(self.saving[self.instance[operations[0]]])
        for i in operations:
            self.ends[i] = ended
            rank, stall = self.member[i], int(self.work.stall[i])
            if stall > 0:
                began = self.end[i] - stall
                saved = self.saved(rank, began)
                resumed = min(self.earlier_at(rank, began, saved) + stall, ended)
                self.stalls.setdefault(rank, []).append((self.end[i], resumed, saved))


def randomize(comparison: RankComparison, work: WorkWindows) -> WorkWindows:
    """Return random stalls, slack, and previous operations wherever they are possible."""
    rng, table = np.random.default_rng(7), comparison.job.table
    start, end, member = (column[work.rows] for column in (table.start, table.end, table.member))
    previous = work.previous.copy()
    for i in range(1, len(start)):
        earlier = np.flatnonzero((member[:i] == member[i]) & (end[:i] <= start[i]))
        previous[i] = rng.choice(earlier) if len(earlier) and rng.random() < 0.7 else NO_CODE
    some = rng.random((2, len(start))) < 0.6
    stall = np.where(some[0], rng.integers(1, np.maximum(end - start, 2)), 0)
    slack = np.where(some[1], rng.integers(0, 2_000_000, len(start)), 0)
    return replace(work, previous=previous, stall=stall, slack=slack)


@pytest.mark.parametrize("randomized", [False, True], ids=["as recorded", "randomized"])
@pytest.mark.parametrize("name", JOBS)
def test_replaying_all_scenarios_at_once_equals_replaying_each_alone(name: str, randomized: bool) -> None:
    comparison = compare_members(JOBS[name].members())
    work, ranks = work_windows(comparison.job), len(comparison.sources)
    work = randomize(comparison, work) if randomized else work
    sets = [{rank} for rank in range(ranks)] + [set(range(ranks)), {0, ranks - 1}, set()]
    typical = np.array([[rank in members for members in sets] for rank in range(ranks)])
    saving = np.zeros((len(comparison.matching), len(sets)), np.int64)
    saving[::3, -1] = 70_000
    saving[1::2, 0] = 40_000
    saving[-1] = 30_000
    network = JobReplay(comparison.job, comparison.matching, comparison.split, work)
    for each in (work, replace(work, typical=work.typical // 3)):  # other typical work in the same network
        replayed = network.replay(ReplayScenarios(typical, saving), each)
        unchanged = SequentialReplay(comparison, each, set(), np.zeros(len(comparison.matching), np.int64))
        for column, members in enumerate(sets):
            alone = SequentialReplay(comparison, each, members, saving[:, column])
            assert replayed.earlier[:, column].tolist() == (np.array(alone.earlier) - unchanged.earlier).tolist()
            assert (
                replayed.arrivals[:, column].tolist() == (np.array(alone.arrivals) - unchanged.arrivals).tolist()
            )
        assert replayed.earlier.any() and replayed.arrivals.any()
    # Scenarios before the last ones save nothing, in whichever batch they are.
    for last in range(1, len(sets) + 1):
        padded = np.where(np.arange(len(sets)) < len(sets) - last, 0, saving)
        replayed, expected = (
            network.replay(ReplayScenarios(typical, each), work) for each in (saving[:, -last:], padded)
        )
        assert np.array_equal(replayed.earlier, expected.earlier)
        assert np.array_equal(replayed.arrivals, expected.arrivals)


def test_the_computation_resumes_after_the_stall_that_ends_last() -> None:
    comparison = compare_members(JOBS["ddp"].members())
    table = comparison.job.table
    end, last = table.end.copy(), np.flatnonzero(np.diff(table.member, append=NO_CODE))
    end[last - 1] = end[last] + 1_000_000
    job = replace(comparison.job, table=replace(table, end=end))
    work = work_windows(job)
    stall = work.stall.copy()
    stall[last - 1], stall[last] = 500_000, 20_000
    work = replace(work, stall=stall)
    typical = np.eye(4, dtype=np.bool_)
    network = JobReplay(job, comparison.matching, comparison.split, work)
    replayed = network.replay(ReplayScenarios(typical), work)
    none = np.zeros(len(comparison.matching), np.int64)
    for rank in range(4):
        alone = SequentialReplay(replace(comparison, job=job), work, {rank}, none)
        assert replayed.earlier[:, rank].tolist() == alone.earlier


def test_operations_that_one_depends_on_are_in_lower_levels() -> None:
    """Ranks 0 and 1 reduce, then both reduce with rank 2, which has no operation before."""
    member, collective = np.array([0, 0, 1, 1, 2], np.int32), np.array([7, 3, 7, 3, 3])
    levels = replay_levels(member, collective, np.arange(5, dtype=np.int32))
    assert levels.order.tolist() == [0, 2, 1, 3, 4]
    assert levels.bounds.tolist() == [0, 2, 5] and levels.runs.tolist() == [0, 2]
    assert levels.run.tolist() == [0, 1, 0, 1, 1, 2]


def test_all_operations_have_a_level_even_if_membersdisagree_on_the_order() -> None:
    """No collective is due: the first rank's operation is taken alone, then the next rank's of the same one."""
    member, collective = np.array([0, 1, 1, 2, 2], np.int32), np.array([0, 0, 1, 1, 0])
    levels = replay_levels(member, collective, np.arange(5, dtype=np.int32))
    assert levels.order.tolist() == [0, 1, 2, 3, 4]
    assert levels.bounds.tolist() == [0, 1, 2, 4, 5] and levels.runs.tolist() == [0, 1, 2, 4]
    assert levels.run.tolist() == [0, 1, 2, 2, 3, 4]


def test_a_job_without_operations_has_no_levels() -> None:
    none = np.empty(0, np.int32)
    levels = replay_levels(none, none.astype(np.int64), none)
    assert (levels.order.tolist(), levels.bounds.tolist(), levels.run.tolist()) == ([], [0], [0])


@pytest.mark.parametrize("seed", range(5))
def test_the_previous_operation_of_a_group_is_the_one_that_ended_last(seed: int) -> None:
    """Messages in both directions overlap; some operations take no time, and some start when others end."""
    rng = np.random.default_rng(seed)
    groups, member = rng.integers(0, 3, 80).astype(np.int32), np.sort(rng.integers(0, 3, 80))
    start = rng.integers(0, 60, 80)
    start = start[np.lexsort((start, member))]
    end = start + rng.integers(0, 8, 80)
    previous = previous_operations(groups, member, start, end).tolist()
    for i, found in enumerate(previous):
        ended = [k for k in range(i) if (groups[k], member[k]) == (groups[i], member[i]) and end[k] <= start[i]]
        assert found in (ended or [NO_CODE]) or all(start[k] == start[i] for k in ended)
        assert all(end[k] <= end[found] for k in ended if start[k] < start[i])


@pytest.mark.parametrize("batches", [2, 3])
def test_a_message_behind_one_that_is_waited_for_comes_as_much_earlier(batches: int) -> None:
    """The first stage sends a second batch and awaits gradients while the late stage hasn't taken the first."""
    programs = [
        [replace_us(each, 0.3) if isinstance(each, SimulatedKernel) else each for each in program]
        for program in pipeline_programs(3, batches)
    ]
    simulation = Simulation(programs, steps=7, delays=[Delay("loading", 1, us=3000, steps=(2, 5))])
    costs = member_costs(simulation.run().members())
    assert costs.by_rank[1] == pytest.approx(1000 * simulation.cost_us(), rel=0.02)
    assert costs.by_rank[[0, 2]].max() < 0.02 * costs.by_rank[1]


def replace_us(kernel: SimulatedKernel, factor: float) -> SimulatedKernel:
    return dataclasses.replace(kernel, us=factor * kernel.us)
