"""What comparing thousands of ranks takes grows as their operations do, told by how many elements it touches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import asdict, replace

from tests.support.simulation.large_jobs import large_job
from torch_tb_profiler.analyses.distributed import comparison as comparing
from torch_tb_profiler.analyses.distributed.groups import group_usage
from torch_tb_profiler.analyses.distributed.job import DistributedJob, JobTable, build_job
from torch_tb_profiler.analyses.distributed.matching import MATCH_METHODS, match_collectives
from torch_tb_profiler.analyses.distributed.totals import group_totals
from torch_tb_profiler.views._shared.job.judgment import judge_members
from torch_tb_profiler.views._shared.job.members import compare_members
from torch_tb_profiler.views.distributed.problems import problems


class Counted(np.ndarray[Any, Any]):
    """An array that counts the elements that operations on it, and on what comes of it, touch."""

    elements = 0

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        Counted.elements += max(np.size(each) for each in inputs)
        if options.get("out"):
            options["out"] = tuple(_plain(each) for each in options["out"])
        result = getattr(ufunc, method)(*map(_plain, inputs), **options)
        return result.view(Counted) if isinstance(result, np.ndarray) else result


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, Counted) else value


def _touched(ranks: int, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """(operations of a job, elements that its comparison touches)."""

    def counted(sources: Any) -> DistributedJob:
        job = build_job(sources)
        columns = {name: column.view(Counted) for name, column in asdict(job.table).items()}
        return replace(job, table=JobTable(**columns))

    monkeypatch.setattr(comparing, "build_job", counted)
    members = large_job(ranks)
    Counted.elements = 0
    comparison, judged = compare_members(members), judge_members(members)
    assert judged.verdict.kind == "straggler" and judged.rows[0].member == 5
    group_usage(comparison)
    group_totals(comparison, judged.totals)
    problems(members)
    return len(comparison.job.table), Counted.elements


def test_four_times_as_many_ranks_take_four_times_as_much(monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = _touched(64, monkeypatch), _touched(256, monkeypatch)
    assert large[0] == 4 * small[0] and small[1] > small[0]
    assert large[1] < 5 * small[1], "a scan of the whole table per rank or group would take sixteen times as much"


def test_numbered_operations_are_matched_by_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """A collective's place in the tables follows from its group, number and ordinal: operations are not sorted,
    but by sixteen bits, which needs no comparisons."""
    job = compare_members(large_job(256)).job
    right, sizes = match_collectives(job), []

    def noted(sort: Any) -> Any:
        def sorting(values: Any, *given: Any, **options: Any) -> Any:
            sizes.append(0 if np.asarray(values).dtype == np.uint16 else np.size(values))
            return sort(values, *given, **options)

        return sorting

    for name in ("argsort", "sort", "lexsort"):
        monkeypatch.setattr(np, name, noted(getattr(np, name)))
    assert (match_collectives(job).instance == right.instance).all()
    assert set(right.method) == {MATCH_METHODS.index("sequence_number")}
    assert 0 < max(sizes) <= len(right) < len(job.table)
