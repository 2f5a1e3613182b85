"""A job of any number of ranks: the page is bounded, and every row is on one of the pages of its parts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from tests.support.jobs import Job, ddp, tensor_and_data_parallel
from tests.support.simulation.large_jobs import LATE_RANK, NODE_SIZE, large_job
from torch_tb_profiler.analyses.distributed.heat_map import bin_cells
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.model.trace import ABSENT, NO_CODE
from torch_tb_profiler.view import Member, Members, NoParams, RunView
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.distributed import build as build_module
from torch_tb_profiler.views.distributed.build import TAB, build
from torch_tb_profiler.views.distributed.payload.job import DistributedPayload

RANKS = 96
PARTS = {part.slug.partition("/")[2]: part for part in TAB.parts if isinstance(part, RunView)}


@cache
def job(ranks: int = RANKS) -> Members[RankSummary]:
    return large_job(ranks)


def ask(part: str, members: Members[RankSummary] | None = None, **params: Any) -> Any:
    view = PARTS[part]
    return view.build(members or job(), view.params(**params))


@pytest.fixture
def complete(monkeypatch: pytest.MonkeyPatch) -> DistributedPayload:
    """Return the payload that has all rows, as if the job were small."""
    with monkeypatch.context() as patched:
        patched.setattr(build_module, "MAX_LISTED_RANKS", RANKS)
        return build(large_job(RANKS), NoParams())


def test_the_page_of_a_large_job_is_bounded() -> None:
    sizes = [len(msgspec.json.encode(build(job(ranks), NoParams()))) for ranks in (RANKS, 8 * RANKS)]
    assert sizes[1] < 60_000 and sizes[1] < 1.2 * sizes[0]
    largest = build(job(8 * RANKS), NoParams())
    assert largest.verdict.rank == LATE_RANK and largest.rank_count == largest.read_count == 8 * RANKS
    assert len(largest.stragglers) == 100 and largest.stragglers[0].rank == LATE_RANK


@pytest.mark.parametrize(
    "name",
    ["ranks", "nodes", "overview", "averages", "families", "waiting", "average_waiting", "collectives", "groups"],
)
def test_the_reason_of_an_empty_list_names_the_part_that_has_it(name: str, complete: DistributedPayload) -> None:
    large = build(job(), NoParams())
    assert getattr(large, name) == [] and getattr(complete, name)
    reason = plain(large.reasons[name])
    part = reason.partition("`distributed/")[2].partition("`")[0]
    assert "96 ranks are too many" in reason and ask(part).total > 0


def test_the_parts_have_the_rows_that_a_small_job_has(complete: DistributedPayload) -> None:
    assert ask("operations").rows == complete.collectives
    assert ask("families").rows == complete.families
    ranks, steps, groups = ask("ranks").rows, ask("steps").rows, ask("groups").rows
    for row, averages, waits, rank in zip(
        ranks, complete.averages, complete.average_waiting, complete.ranks, strict=True
    ):
        assert row.worker == averages.worker == waits.worker == rank.worker
        assert (row.duration_ns, row.exposed_ns) == (averages.duration_ns, averages.exposed_ns)
        assert (row.transfer_ns, row.waiting_ns) == (waits.transfer_ns, waits.waiting_ns)
        assert (row.method, row.residual_ns) == (
            rank.clock and rank.clock.method,
            rank.clock and rank.clock.residual_ns,
        )
    by_worker = {row.worker: row for row in complete.stragglers}
    assert all(row.cost_ns == by_worker[row.worker].cost_ns for row in ranks if row.worker in by_worker)
    assert [(row.worker, row.step, row.duration_ns) for row in steps] == [
        (row.worker, row.step, row.duration_ns) for row in complete.overview
    ]
    assert [(row.worker, row.step, row.transfer_ns, row.waiting_ns) for row in steps] == [
        (row.worker, row.step, row.transfer_ns, row.waiting_ns) for row in complete.waiting
    ]
    assert [(row.group, row.calls, row.waiting_ns) for row in groups] == [
        (group.id, each.calls, each.waiting_ns) for group in complete.groups for each in group.operations
    ]


def test_pages_join_to_the_whole_table() -> None:
    rows = ask("ranks").rows
    pages = [ask("ranks", first=first, limit=40) for first in (0, 40, 80)]
    assert [row for each in pages for row in each.rows] == rows and {each.total for each in pages} == {RANKS}


@pytest.mark.parametrize(
    ("search", "ranks"),
    [
        ("7", [7]),
        ("Rank 77", [77]),
        ("host11", [88, 89, 90, 91, 92, 93, 94, 95]),
        ("HOST3_1030", [30]),
        ("1030", [30]),
        ("nobody", []),
    ],
)
def test_a_rank_is_found_by_number_worker_and_host(search: str, ranks: list[int]) -> None:
    found = ask("ranks", search=search)
    assert [row.rank for row in found.rows] == ranks and found.total == len(ranks)


def test_what_is_not_known_comes_last_in_every_order() -> None:
    members = [*job()]
    members[3] = Member(members[3].worker, 3, "1", "failed", "the file is cut off", None)
    for descending in (False, True):
        rows = ask("ranks", Members(members), sort="cost_ns", descending=descending).rows
        costs = [row.cost_ns for row in rows]
        assert rows[-1].rank == 3 and costs[-1] is None
        assert costs[:-1] == sorted(costs[:-1], reverse=descending)


def test_the_spread_of_the_ranks_is_that_of_their_rows(complete: DistributedPayload) -> None:
    by_measure = {each.measure: each for each in build(job(), NoParams()).spreads}
    for measure in ("duration", "computation", "exposed", "other"):
        times = np.array([getattr(row, f"{measure}_ns") for row in complete.averages])
        each = by_measure[measure]
        assert each.ranks == RANKS and each.mean_ns == pytest.approx(times.mean())
        assert (each.least_ns, each.most_ns) == (times.min(), times.max())
        assert [each.p10_ns, each.median_ns, each.p90_ns] == pytest.approx(
            np.percentile(times, [10, 50, 90]).tolist()
        )
        assert each.most_worker == complete.averages[int(times.argmax())].worker
    assert by_measure["cost"].most_worker == f"host0_{1000 + LATE_RANK}"


def test_groups_that_share_a_description_are_told_apart_by_name() -> None:
    families = build(job(), NoParams()).group_families
    assert [(each.label, each.groups, each.size, each.complete) for each in families] == [
        ("tp", RANKS // NODE_SIZE, NODE_SIZE, RANKS // NODE_SIZE),
        ("dp", NODE_SIZE, RANKS // NODE_SIZE, NODE_SIZE),
    ]
    rows = ask("groups").rows
    for each in families:
        own = [row for row in rows if row.family == each.label]
        assert each.waiting_ns == sum(row.waiting_ns for row in own)
        assert each.slowest_waiting_ns == max(row.waiting_ns for row in own)
        assert each.slowest_ranks == max(own, key=lambda row: row.waiting_ns).ranks
    places = {each.family: each.place for each in ask("ranks", search="77").rows[0].places}
    assert places == {"tp": 77 % NODE_SIZE, "dp": 77 // NODE_SIZE}


def test_numbered_groups_are_told_apart_by_size_and_spacing() -> None:
    members = []
    for member in job():
        assert member.result is not None
        groups = tuple(
            replace(group, name=str(at), description=None) for at, group in enumerate(member.result.groups)
        )
        members.append(
            Member(
                member.worker,
                member.rank,
                "1",
                "ready",
                None,
                replace(member.result, groups=groups),
                member.details,
            )
        )
    labels = [each.label for each in build(Members(members), NoParams()).group_families]
    assert labels == ["groups of 8", "groups of 12, 8 ranks apart"]


def test_a_rank_without_its_group_mates_makes_the_group_incomplete() -> None:
    members = [member for member in job() if member.rank != 9]
    families = {each.label: each for each in build(Members(members), NoParams()).group_families}
    assert (families["tp"].complete, families["dp"].complete) == (RANKS // NODE_SIZE - 1, NODE_SIZE - 1)


def test_the_map_shows_the_worst_of_what_a_cell_joins(complete: DistributedPayload) -> None:
    assert complete.heat_map is not None
    late = complete.heat_map.lateness_ns
    by_rank = ask("map")
    assert [[row[at] for row in by_rank.cells_ns] for at in range(RANKS)] == late
    by_host = ask("map", by="host")
    assert [column.ranks for column in by_host.columns] == [NODE_SIZE] * (RANKS // NODE_SIZE)
    for at, column in enumerate(by_host.columns):
        own = late[at * NODE_SIZE : (at + 1) * NODE_SIZE]
        assert [row[at] for row in by_host.cells_ns] == [
            max(time or 0 for time in step) for step in zip(*own, strict=True)
        ]
        assert column.worst_rank == at * NODE_SIZE + int(
            np.argmax([max(time or 0 for time in row) for row in own])
        )
    by_place = ask("map", by="tp")
    assert [row[LATE_RANK] for row in by_place.cells_ns] == [
        max(time or 0 for time in step) for step in zip(*late[LATE_RANK::NODE_SIZE], strict=True)
    ]
    assert by_rank.choices == ["rank", "host", "tp", "dp"]


def test_a_part_of_the_map_and_the_column_of_a_rank() -> None:
    complete, part = ask("map"), ask("map", begin=16, end=24, mark="host2_1019")
    assert [column.label for column in part.columns] == [str(rank) for rank in range(16, 24)]
    assert part.cells_ns == [row[16:24] for row in complete.cells_ns] and part.count == RANKS
    assert part.marked == 3 and ask("map", by="host", mark="host2_1019").marked == 2
    assert ask("map", begin=16, end=24, mark="host0_1001").marked is None
    assert ask("map", begin=RANKS).columns == []
    with pytest.raises(NotFoundError):
        ask("map", by="stage")


def test_maxima_of_more_ranks_and_steps_than_there_are_cells() -> None:
    cells = np.random.default_rng(7).integers(0, 10**9, (1000, 200))
    cells[:, 5] = ABSENT
    cells[40:44] = ABSENT
    keys = np.arange(1000)
    keys[13] = NO_CODE
    shown = bin_cells(cells, [str(step) for step in range(200)], keys)
    assert (len(shown.columns), len(shown.steps)) == (256, 64)
    remaining = np.delete(cells, 13, axis=0)
    assert max(max(cell or 0 for cell in row) for row in shown.cells) == remaining.max()
    assert sum(column.ranks for column in shown.columns) == 999
    for at, column in enumerate(shown.columns):
        own = remaining[column.first : column.last + 1]
        greatest = own.max()
        assert max(row[at] or ABSENT for row in shown.cells) == greatest
        assert column.worst is None or cells[column.worst].max() == greatest
    assert "5" not in {name for steps in shown.steps for name in steps}


def test_late_hosts_are_counted_over_all_ranks() -> None:
    large = build(job(8 * RANKS), NoParams())
    assert large.late_hosts[0].host == "host0" and {each.ranks for each in large.late_hosts} == {NODE_SIZE}
    assert large.late_hosts[0].cost_ns == large.stragglers[0].cost_ns and not large.late_hosts[0].together
    assert build(Job(4, ddp(4)).members(), NoParams()).late_hosts == []


def test_problems_of_thousands_of_ranks_are_counted() -> None:
    members = [*job()]
    for rank in range(1, RANKS, 2):
        members[rank] = Member(members[rank].worker, rank, "1", "failed", "the file is cut off", None)
    broken = [each for each in build(Members(members), NoParams()).problems if each.kind == "broken_rank"]
    assert len(broken) == 21 and plain(broken[-1].text) == "28 more ranks are missing"
    assert len(msgspec.json.encode(broken)) < 5000


def test_while_ranks_are_read_the_cost_of_one_without_a_mate_is_unknown() -> None:
    """Ranks 9 and 10 share a group; rank 0 shares one with neither."""
    ready = Job(RANKS, tensor_and_data_parallel(RANKS, 8)).members([0, 9, 10])
    first = ready[0]
    others = (rank for rank in range(RANKS) if rank not in (0, 9, 10))
    reading: Iterator[Member[RankSummary]] = (
        Member(f"host{rank // 8}_{1000 + rank}", rank, first.span, "loading", None, None) for rank in others
    )
    members = Members([*ready, *reading])
    payload = build(members, NoParams())
    assert sorted(row.rank or 0 for row in payload.stragglers) == [9, 10]
    assert {
        spread.measure: spread.ranks for spread in payload.spreads if spread.measure in ("cost", "waiting")
    } == {
        "cost": 2,
        "waiting": 2,
    }
    costs = {row.rank: (row.cost_ns, row.last) for row in ask("ranks", members).rows if row.compared}
    assert costs[0] == (None, None)
    assert all(costs[rank][0] is not None for rank in (9, 10))
