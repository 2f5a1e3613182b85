"""The job replayed with some of its work shortened: how much earlier does everything end?

What happened is a network: a rank arrives at a collective after its own work; the collective ends one transfer
after the last arrival; the rank's computation resumes after the end if it stalled for it. So if work becomes
shorter,

    a rank reaches an operation earlier by     what its computation is earlier by, plus the slack of the operation,
                                               but no more than its stream is free earlier
    a collective ends earlier by               the minimum of (earlier + waited) of its ranks: a rank that waited
    time the computation resumes earlier by         can be later; (earlier + stalled), but no more than the
    collective

All quantities are lengths or differences of times on one rank, so that no clocks are compared.

Operations are replayed in levels (see `network`).
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.compiled import RecordedOperations, Replay, replay_functions
from torch_tb_profiler.analyses.distributed.job import DistributedJob
from torch_tb_profiler.analyses.distributed.matching import Matching
from torch_tb_profiler.analyses.distributed.network import build_network
from torch_tb_profiler.analyses.distributed.operations import select
from torch_tb_profiler.analyses.distributed.waiting import WaitingSplit
from torch_tb_profiler.analyses.distributed.work_windows import WorkWindows
from torch_tb_profiler.model.trace import Bool, Int32, Int64

_SCENARIOS_PER_BATCH = 8
"""Scenarios replayed at once, so that with 10,000 ranks the data of a level stays in the processor's cache."""


class ReplayScenarios(msgspec.Struct, frozen=True):
    """The changes to replay, one scenario in each of q columns.

    typical            bool[ranks, q]   these ranks work as long as is typical
    collective_saving  int64[c, s] ns   by how much collectives themselves end earlier in the last s scenarios;
                                        None: in none
    """

    typical: Bool
    collective_saving: Int64 | None = None


class ReplayResult(msgspec.Struct, frozen=True):
    """The effect of each scenario, int64[ranks, q] ns.

    earlier   how much earlier each rank's computation ends
    arrivals  how much earlier it reaches the collectives that wait for it alone, in total
    """

    earlier: Int64
    arrivals: Int64


def _select(scenarios: ReplayScenarios, part: slice) -> ReplayScenarios:
    typical, saving = scenarios.typical[:, part], scenarios.collective_saving
    if saving is None or not saving.shape[1]:
        return ReplayScenarios(typical)
    before = scenarios.typical.shape[1] - saving.shape[1]  # scenarios in which no collective ends earlier itself
    mine = saving[:, max(part.start - before, 0) : max(part.stop - before, 0)]
    if not mine.shape[1]:
        return ReplayScenarios(typical)
    padded = np.zeros((len(saving), typical.shape[1]), np.int64)
    padded[:, typical.shape[1] - mine.shape[1] :] = mine
    return ReplayScenarios(typical, padded)


class _Moments(NamedTuple):
    """Moments on ranks as columns of length k, those of a level together.

    member  int32[k]  the rank
    stalls  int32[k]  its last stall: a row among the replayed stalls, the last row for none
    until   int32[k]  the last operation before the moment; since: the last one before that stall, NO_CODE for none
    bounds  int64[levels + 1]  where the moments of each level begin
    """

    member: Int32
    stalls: Int32
    until: Int32
    since: Int32
    bounds: Int64

    def saved(self, excess: Int64) -> Int64:
        """Return int64[k], the ns of work saved since the last stall if the rank works as long as is typical.

        excess  int64[m + 1]  the sum of a rank's excess up to each operation, and a 0 for NO_CODE
        """
        saved: Int64 = excess[self.until]
        saved -= excess[self.since]
        return saved


class _Savings:
    """The work that scenarios save before moments: in some scenarios on all ranks, in the others on few ranks."""

    def __init__(self, typical: Bool, moments: _Moments, saved: Int64) -> None:
        everyone = typical.all(axis=0)
        self._everyone, self._saved = np.flatnonzero(everyone), saved[:, None]
        few = typical & ~everyone
        self._rows = np.flatnonzero(np.asarray(few.any(axis=1))[moments.member])
        self._amounts = self._saved[self._rows] * few[moments.member[self._rows]]
        self._bounds = np.searchsorted(self._rows, moments.bounds).tolist()
        self._begins = moments.bounds.tolist()

    def add_to(self, earlier: Int64, level: int) -> None:
        """Add the savings to int64[k, q] ns of the moments of a level."""
        begin, end = self._begins[level : level + 2]
        if len(self._everyone):
            earlier[:, self._everyone] += self._saved[begin:end]
        part = slice(*self._bounds[level : level + 2])
        earlier[self._rows[part] - begin] += self._amounts[part]


class JobReplay:
    """Replays scenarios of a job, with what is typical in its windows or with another typical work."""

    def __init__(self, job: DistributedJob, matching: Matching, split: WaitingSplit, work: WorkWindows) -> None:
        table, rows = job.table, work.rows
        member = select(table.member, rows)
        self.ranks, self._counts = len(job.sources), np.bincount(member, minlength=len(job.sources))
        self._network = build_network(
            RecordedOperations(
                self.ranks,
                len(matching),
                member,
                select(matching.instance, rows),
                select(split.compared, rows),
                select(table.start, rows),
                select(table.end, rows),
                select(split.waiting, rows),
                work.previous,
                work.slack,
                work.stall,
            )
        )
        bounds = self._network.bounds, self._network.stall_bounds, np.array([0, len(self._network.member[2])])
        parts = (self._network.member, self._network.stalls, self._network.until, self._network.since, bounds)
        self._reached, self._stalled, self._end = (_Moments(*each) for each in zip(*parts, strict=True))
        self._unchanged = self._replay_nothing()

    def replay(self, scenarios: ReplayScenarios, work: WorkWindows) -> ReplayResult:
        """Replay all scenarios, a batch of them at once.

        What a replay without any change gains isn't due to the scenarios: work may start some µs later than all
        that it waits for allows.

        work  the windows that the job was made of, perhaps with another typical work
        """
        saved = self._saved(work)
        starts = range(0, max(scenarios.typical.shape[1], 1), _SCENARIOS_PER_BATCH)
        parts = [
            self._run(_select(scenarios, slice(first, first + _SCENARIOS_PER_BATCH)), saved) for first in starts
        ]
        fields = ReplayResult.__struct_fields__
        return ReplayResult(
            *(
                np.concatenate([getattr(part, name) for part in parts], axis=1) - getattr(self._unchanged, name)
                for name in fields
            )
        )

    def _replay_nothing(self) -> ReplayResult:
        """Return the replay in which no rank works as long as is typical, so that no excess counts."""
        nobody = ReplayScenarios(np.zeros((self.ranks, 1), np.bool_))
        counts = [len(each.member) for each in (self._reached, self._stalled, self._end)]
        nothing = np.zeros(max(counts), np.int64)
        return self._run(nobody, [nothing[:count] for count in counts])

    def _saved(self, work: WorkWindows) -> list[Int64]:
        """Return the ns of work saved before each of the three kinds of moments."""
        if (functions := replay_functions()) is not None:
            return functions.saved(work.work, work.typical, self._counts, self._network)
        excess = _accumulate_excess(work.excess, self._counts)
        return [moments.saved(excess) for moments in (self._reached, self._stalled, self._end)]

    @cached_property
    def _compiled(self) -> Replay | None:
        """Return the function in C for this job, None if Python replays it."""
        functions = replay_functions()
        return None if functions is None else functions.prepare(self._network)

    def _run(self, scenarios: ReplayScenarios, saved: list[Int64]) -> ReplayResult:
        """Replay the scenarios level by level."""
        if self._compiled is not None:
            return ReplayResult(*self._compiled(scenarios.typical, scenarios.collective_saving, saved))
        network, columns = self._network, scenarios.typical.shape[1]
        kinds = zip((self._reached, self._stalled, self._end), saved, strict=True)
        reach, stall, end = (_Savings(scenarios.typical, moments, each) for moments, each in kinds)
        ends = np.zeros((len(network.run_begins) + 1, columns), np.int64)  # the last row: no previous operation
        resumed = np.zeros((len(network.stall_run) + 1, columns), np.int64)  # the last row: no stall yet
        arrivals = np.zeros((self.ranks, columns), np.int64)
        saving = None
        if scenarios.collective_saving is not None and scenarios.collective_saving.any():
            saving = np.concatenate([scenarios.collective_saving, np.zeros((1, columns), np.int64)])
        run_begins, last_places = network.run_begins, np.flatnonzero(network.last_arrival)
        for level, (rows, runs, last_arrivals, stalled) in enumerate(self._level_slices):
            reached = resumed.take(self._reached.stalls[rows], axis=0)
            reach.add_to(reached, level)
            reached += network.slack[rows, None]
            freed = ends.take(network.previous[rows], axis=0)
            freed += network.gap[rows, None]
            np.minimum(reached, freed, out=reached)
            places = last_places[last_arrivals]
            arrivals[self._reached.member[places]] += reached[places - rows.start]
            reached += network.waited[rows, None]
            ended = np.minimum.reduceat(reached, run_begins[runs] - rows.start, axis=0)
            if saving is not None:
                ended += saving.take(network.number[runs], axis=0)
            ends[runs] = ended
            before = resumed.take(self._stalled.stalls[stalled], axis=0)
            stall.add_to(before, level)
            before += network.stall_length[stalled, None]
            np.minimum(before, ended.take(network.stall_run[stalled] - runs.start, axis=0), out=resumed[stalled])
        earlier = np.zeros((self.ranks, columns), np.int64)
        at_the_end = resumed.take(self._end.stalls, axis=0)
        end.add_to(at_the_end, 0)
        earlier[self._end.member] = at_the_end
        return ReplayResult(earlier, arrivals)

    @cached_property
    def _level_slices(self) -> list[tuple[slice, slice, slice, slice]]:
        """Return, for each level, the slices of operations, runs, last arrivals, and stalls."""
        bounds, last = self._reached.bounds, np.flatnonzero(self._network.last_arrival)
        last_arrivals, runs = (np.searchsorted(places, bounds) for places in (last, self._network.run_begins))
        parts = (_slices(part) for part in (bounds, runs, last_arrivals, self._stalled.bounds))
        return list(zip(*parts, strict=True))


def _slices(bounds: Int64) -> list[slice]:
    return [slice(*pair) for pair in pairwise(bounds.tolist())]


def _accumulate_excess(excess: Int64, counts: Int64) -> Int64:
    """Return int64[m + 1], the sum of a rank's excess up to each operation, and 0.

    counts  int64[ranks]  operations of each rank
    """
    since = np.zeros(len(excess) + 1, np.int64)
    np.cumsum(excess, out=since[:-1])
    before = np.append(0, since[:-1])[np.cumsum(counts) - counts]
    since[:-1] -= np.repeat(before, counts)
    return since
