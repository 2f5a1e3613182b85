"""Jobs of many ranks: results equal those of each rank alone, and the effort is proportional to the ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import asdict, replace

from tests.support.simulation.large_jobs import LATE_RANK, large_job
from torch_tb_profiler.analyses.distributed import comparison as comparison_module
from torch_tb_profiler.analyses.distributed import replay
from torch_tb_profiler.analyses.distributed.costs import straggler_costs
from torch_tb_profiler.analyses.distributed.groups import group_usage
from torch_tb_profiler.analyses.distributed.job import DistributedJob, JobTable, build_job
from torch_tb_profiler.analyses.distributed.matching import MATCH_METHODS, has_own_time, match_collectives
from torch_tb_profiler.analyses.distributed.totals import group_totals
from torch_tb_profiler.base.intervals import merge
from torch_tb_profiler.model.communication.collectives import TimingSource
from torch_tb_profiler.model.trace import NO_CODE
from torch_tb_profiler.views._shared.job.members import compare_members, judge_members
from torch_tb_profiler.views.distributed.problems import build_problems

RANKS = 160
"""More ranks than are unpacked in one batch."""


def test_the_table_of_a_job_has_the_operations_of_every_rank() -> None:
    job = compare_members(large_job(RANKS)).job
    table, begin = job.table, 0
    for member, source in enumerate(job.sources):
        summary = source.summary.table()
        rows = slice(begin, begin + len(summary))
        begin += len(summary)
        assert set(table.member[rows].tolist()) == {member}
        assert table.row[rows].tolist() == list(range(len(summary)))
        for name in ("sequence", "issue", "start", "end", "latency", "exposed", "stall", "message", "window"):
            assert getattr(table, name)[rows].tolist() == summary[name].tolist()
        for name in ("collective", "backend", "dtype"):
            codes = getattr(table, name)[rows].tolist()
            summary_codes = summary[name].tolist()
            assert [code == NO_CODE or job.names[code] for code in codes] == [
                code == NO_CODE or source.summary.names[code] for code in summary_codes
            ]
        ranks = [source.summary.groups[code].ranks for code in summary["group"].tolist()]
        assert [job.groups[code].ranks for code in table.group[rows].tolist()] == ranks
        steps = [job.steps[code] for code in table.step[rows].tolist()]
        assert steps == [source.summary.steps.names[code] for code in summary["step"].tolist()]
    assert begin == len(table)


def test_an_empty_job_has_columns_of_the_same_types() -> None:
    empty, full = build_job([]).table, compare_members(large_job(8)).job.table
    for name in JobTable.__annotations__:
        assert getattr(empty, name).dtype == getattr(full, name).dtype and len(getattr(empty, name)) == 0


@pytest.mark.parametrize("batch", [1, 3, 1000])
def test_scenarios_do_not_depend_on_how_many_are_replayed_at_once(
    batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    comparison = compare_members(large_job(64))
    arguments = comparison.job, comparison.matching, comparison.split
    expected = straggler_costs(*arguments)
    monkeypatch.setattr(replay, "_SCENARIOS_PER_BATCH", batch)
    costs = straggler_costs(*arguments)
    assert costs.by_rank.tolist() == expected.by_rank.tolist()
    assert costs.held_up_by.tolist() == expected.held_up_by.tolist()
    assert costs.sets == expected.sets
    assert (costs.imbalance, costs.slow_links) == (expected.imbalance, expected.slow_links)
    assert int(expected.by_rank.argmax()) == LATE_RANK and 2e6 < expected.by_rank[LATE_RANK] < 4e6


def test_the_delay_of_a_rank_is_the_union_of_its_own_lateness() -> None:
    """The times of the ranks beside it in the table have no influence."""
    members = large_job(64)
    comparison, rows = compare_members(members), judge_members(members).rows
    table, arrivals, split = comparison.job.table, comparison.arrivals, comparison.split
    late = [row for row in rows if row.last]
    assert len(late) > 2
    for row in late:
        operations = np.flatnonzero(split.compared & (table.member == row.member))
        late_times = []
        waits = [
            (int(table.end[i] - table.latency[i]), int(table.end[i] - table.latency[i] + split.waiting[i]))
            for i in operations.tolist()
        ]
        for i in arrivals.last[arrivals.attributable].tolist():
            if table.member[i] != row.member:
                continue
            start, lateness = int(table.start[i]), int(arrivals.lateness[i])
            before = [j for j in operations.tolist() if j < i and table.group[j] == table.group[i]]
            since = max([start - int(table.end[j]) for j in before[-1:]], default=0)
            low = start - max(lateness, since)
            union = merge(*np.array(waits, np.int64).T)
            waited = sum(
                max(min(end, start) - max(begin, low), 0)
                for begin, end in zip(union.starts.tolist(), union.ends.tolist(), strict=True)
            )
            late_times.append((start - (lateness - waited), start))
        found = merge(*np.array(late_times, np.int64).T)
        assert row.delay == int((found.ends - found.starts).sum())


# ---- effort ---------------------------------------------------------------------------------------------


class CountingArray(np.ndarray[Any, Any]):
    """An array that counts the elements touched by operations on it and on their results."""

    elements = 0

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        CountingArray.elements += max(np.size(value) for value in inputs)
        if options.get("out"):
            options["out"] = tuple(_plain(value) for value in options["out"])
        result = getattr(ufunc, method)(*map(_plain, inputs), **options)
        return result.view(CountingArray) if isinstance(result, np.ndarray) else result


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, CountingArray) else value


def _count_touched(ranks: int, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Return (operations of a job, elements that its comparison touches)."""

    def build_counting_job(sources: Any) -> DistributedJob:
        job = build_job(sources)
        columns = {name: column[:].view(CountingArray) for name, column in asdict(job.table).items()}
        return replace(job, table=JobTable(**columns))

    monkeypatch.setattr(comparison_module, "build_job", build_counting_job)
    members = large_job(ranks)
    CountingArray.elements = 0
    comparison, judged = compare_members(members), judge_members(members)
    assert judged.verdict.kind == "straggler" and judged.rows[0].member == LATE_RANK
    group_usage(comparison)
    group_totals(comparison, judged.totals)
    build_problems(members)
    return len(comparison.job.table), CountingArray.elements


def test_four_times_as_many_ranks_take_four_times_as_much(monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = _count_touched(64, monkeypatch), _count_touched(256, monkeypatch)
    assert large[0] == 4 * small[0] and small[1] > small[0]
    assert large[1] < 5 * small[1], "a scan of the entire table per rank or group would take sixteen times as much"


def test_what_is_derived_from_a_job_is_derived_once_and_anew_for_a_changed_one() -> None:
    job = compare_members(large_job(8)).job
    assert has_own_time(job).all() and has_own_time(job) is has_own_time(job)
    untimed = replace(job, table=replace(job.table, timing=np.full_like(job.table.timing[:], TimingSource.NONE)))
    assert not has_own_time(untimed).any()


def test_numbered_operations_are_matched_without_sorting_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """A collective's place in the tables follows from its group, number, and ordinal.

    Sorting by sixteen bits is allowed, as it needs no comparisons.
    """
    job = compare_members(large_job(256)).job
    matching, again, sizes = match_collectives(job), build_job(job.sources), []

    def record_size(sort: Any) -> Any:
        def recording_sort(values: Any, *arguments: Any, **options: Any) -> Any:
            sizes.append(0 if np.asarray(values).dtype == np.uint16 else np.size(values))
            return sort(values, *arguments, **options)

        return recording_sort

    for name in ("argsort", "sort", "lexsort"):
        monkeypatch.setattr(np, name, record_size(getattr(np, name)))
    assert (match_collectives(again).instance == matching.instance).all()
    assert set(matching.method) == {MATCH_METHODS.index("sequence_number")}
    assert 0 < max(sizes) <= len(matching) < len(job.table)
