"""The table of collectives, and one of them."""

from __future__ import annotations

import pytest

from tests.support.jobs import CULPRIT, Job, ddp
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.views.distributed.collectives import (
    CollectiveParams,
    CollectivesParams,
    build_collective,
    build_collectives,
)


def test_the_table_is_filtered_sorted_and_cut_into_pages() -> None:
    members = Job(4, ddp(4), straggler=2).members()
    everything = build_collectives(members, CollectivesParams())
    assert [row.id for row in everything.rows] == list(range(9)) and everything.total == 9
    late = build_collectives(members, CollectivesParams(sort="skew", descending=True, limit=3))
    assert late.total == 9 and {row.late_rank for row in late.rows} == {2}
    assert [row.skew_ns for row in late.rows] == sorted((row.skew_ns for row in late.rows), reverse=True)  # type: ignore[type-var]
    assert len(build_collectives(members, CollectivesParams(step="2", name="nccl:all_reduce")).rows) == 3
    assert {row.late_worker for row in build_collectives(members, CollectivesParams(late="host0_1002")).rows} == {
        "host0_1002"
    }
    page = build_collectives(members, CollectivesParams(first=8, limit=3))
    assert [row.id for row in page.rows] == [8]


def test_what_cannot_be_is_refused_with_what_can() -> None:
    members = Job(2, ddp(2)).members()
    for params in (CollectivesParams(group=7), CollectivesParams(step="99"), CollectivesParams(late="nobody")):
        with pytest.raises(NotFoundError):
            build_collectives(members, params)
    with pytest.raises(NotFoundError, match="no collective 99"):
        build_collective(members, CollectiveParams(99))


def test_one_collective_shows_every_rank_and_what_it_did_before() -> None:
    members = Job(4, ddp(4), straggler=2).members()
    first_of_step_2 = build_collectives(members, CollectivesParams(step="2")).rows[0]
    one = build_collective(members, CollectiveParams(first_of_step_2.id))
    assert [each.rank for each in one.participants] == [0, 1, 2, 3]
    late = one.participants[2]
    assert late.after_first_ns == one.instance.skew_ns and late.before is not None
    assert late.before.host[0].name == CULPRIT
    assert late.before.window_ns == sum(share.ns for share in late.before.categories)
    assert late.waiting_ns is not None and late.waiting_ns < 1_000
    others = [each for each in one.participants if each.rank != 2]
    assert all(each.latency_ns == each.transfer_ns + each.waiting_ns for each in others)  # type: ignore[operator]
    assert one.median_worker in {each.worker for each in others}
    assert all(each.event >= 0 and each.call is not None for each in one.participants)
