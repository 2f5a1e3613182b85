"""What is computed for all ranks at once is what each of them gives by itself."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.simulation.large_jobs import LATE, large_job
from torch_tb_profiler.analyses.distributed import replay as replaying
from torch_tb_profiler.analyses.distributed.costs import straggler_costs
from torch_tb_profiler.analyses.distributed.job import JobTable, build_job
from torch_tb_profiler.analyses.distributed.medians import medians_of_others, middle_means
from torch_tb_profiler.analyses.distributed.order_matching import ordinals
from torch_tb_profiler.base.intervals import merge, merge_by_owner
from torch_tb_profiler.model.trace import ABSENT, NO_CODE
from torch_tb_profiler.views._shared.job.judgment import judge_members
from torch_tb_profiler.views._shared.job.members import compare_members

RANKS = 160
"""More than are taken apart at once."""


def test_the_table_of_a_job_has_the_operations_of_every_rank_in_its_own_words() -> None:
    job = compare_members(large_job(RANKS)).job
    table, begin = job.table, 0
    for member, source in enumerate(job.sources):
        own = source.summary.table()
        rows = slice(begin, begin + len(own))
        begin += len(own)
        assert set(table.member[rows].tolist()) == {member}
        assert table.row[rows].tolist() == list(range(len(own)))
        for name in ("sequence", "issue", "start", "end", "latency", "exposed", "stall", "message", "window"):
            assert getattr(table, name)[rows].tolist() == own[name].tolist()
        for name in ("collective", "backend", "dtype"):
            codes = getattr(table, name)[rows].tolist()
            own_codes = own[name].tolist()
            assert [code == NO_CODE or job.names[code] for code in codes] == [
                code == NO_CODE or source.summary.names[code] for code in own_codes
            ]
        ranks = [source.summary.groups[code].ranks for code in own["group"].tolist()]
        assert [job.groups[code].ranks for code in table.group[rows].tolist()] == ranks
        steps = [job.steps[code] for code in table.step[rows].tolist()]
        assert steps == [source.summary.steps.names[code] for code in own["step"].tolist()]
    assert begin == len(table)


def test_a_job_without_ranks_has_columns_of_their_types() -> None:
    empty, full = build_job([]).table, compare_members(large_job(8)).job.table
    for name in JobTable.__annotations__:
        assert getattr(empty, name).dtype == getattr(full, name).dtype and len(getattr(empty, name)) == 0


@pytest.mark.parametrize("at_once", [1, 3, 1000])
def test_what_ifs_do_not_depend_on_how_many_are_replayed_at_once(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    comparison = compare_members(large_job(64))
    arguments = comparison.job, comparison.matching, comparison.split
    expected = straggler_costs(*arguments)
    monkeypatch.setattr(replaying, "_SCENARIOS_PER_BATCH", at_once)
    again = straggler_costs(*arguments)
    assert (
        again.by_rank.tolist() == expected.by_rank.tolist()
        and again.held_up_by.tolist() == expected.held_up_by.tolist()
    )
    assert (again.sets, again.imbalance, again.slow_links) == (
        expected.sets,
        expected.imbalance,
        expected.slow_links,
    )
    assert int(expected.by_rank.argmax()) == LATE and 2e6 < expected.by_rank[LATE] < 4e6


def test_delays_of_all_ranks_are_those_of_each_alone() -> None:
    """A rank's delay is the union of its own lateness, whatever the times of the ranks beside it."""
    members = large_job(64)
    comparison, rows = compare_members(members), judge_members(members).rows
    table, arrivals, split = comparison.job.table, comparison.arrivals, comparison.split
    late = [row for row in rows if row.last]
    assert len(late) > 2
    for row in late:
        mine = np.flatnonzero(split.compared & (table.member == row.member))
        stretches = []
        waits = [
            (int(table.end[i] - table.latency[i]), int(table.end[i] - table.latency[i] + split.waiting[i]))
            for i in mine.tolist()
        ]
        for i in arrivals.last[arrivals.attributable].tolist():
            if table.member[i] != row.member:
                continue
            start, lateness = int(table.start[i]), int(arrivals.lateness[i])
            before = [j for j in mine.tolist() if j < i and table.group[j] == table.group[i]]
            since = max([start - int(table.end[j]) for j in before[-1:]], default=0)
            low = start - max(lateness, since)
            union = merge(*np.array(waits, np.int64).T)
            waited = sum(
                max(min(end, start) - max(begin, low), 0)
                for begin, end in zip(union.starts.tolist(), union.ends.tolist(), strict=True)
            )
            stretches.append((start - (lateness - waited), start))
        found = merge(*np.array(stretches, np.int64).T)
        assert row.delay == int((found.ends - found.starts).sum())


@pytest.mark.parametrize("scale", [1, 10**15])
def test_owned_intervals_are_merged_by_owner_however_large_their_times_are(scale: int) -> None:
    dice = np.random.default_rng(4)
    owner, starts = dice.integers(0, 40, 500), dice.integers(0, 2000, 500) * scale
    ends = starts + dice.integers(-1, 60, 500) * scale
    owned = merge_by_owner(owner, starts, ends)
    for each in range(40):
        alone = merge(starts[owner == each], ends[owner == each])
        assert owned.starts[owned.owner == each].tolist() == alone.starts.tolist()
        assert owned.ends[owned.owner == each].tolist() == alone.ends.tolist()


def test_ordinals_count_equal_keys_in_their_order() -> None:
    dice = np.random.default_rng(2)
    keys = dice.integers(0, 4, 300), np.where(dice.random(300) < 0.3, ABSENT, dice.integers(0, 3, 300))
    backwards = dice.random(300) < 0.5
    pairs = list(zip(*(key.tolist() for key in keys), strict=True))
    expected = [pairs[:i].count(pair) - (pairs.count(pair) if backwards[i] else 0) for i, pair in enumerate(pairs)]
    assert ordinals(backwards, *keys).tolist() == expected
    unlike = np.arange(5)
    assert ordinals(np.array([True, False, True, False, False]), unlike).tolist() == [-1, 0, -1, 0, 0]


def test_medians_of_offsets_are_those_of_numpy() -> None:
    dice = np.random.default_rng(3)
    which = np.append(np.arange(30), dice.integers(0, 30, 200))
    values = dice.integers(-(10**15), 10**15, len(which))
    medians = middle_means(values, which, np.bincount(which))
    assert medians.tolist() == [int(np.median(values[which == each])) for each in range(30)]


def test_the_median_of_the_others_leaves_each_one_out_in_turn() -> None:
    """Of an even number the lower half of what lies between the two in the middle."""
    dice = np.random.default_rng(3)
    groups = [np.sort(dice.integers(-1_000, 1_000, size)) for size in (2, 3, 4, 5, 8, 9)]
    sizes = np.array([len(each) for each in groups])
    begins = np.repeat(np.cumsum(sizes) - sizes, sizes)
    position = np.arange(sizes.sum()) - begins
    medians = medians_of_others(np.concatenate(groups), begins, np.repeat(sizes, sizes), position)
    alone = [np.median(np.delete(each, i)) for each in groups for i in range(len(each))]
    assert medians.tolist() == np.floor(alone).tolist()
