"""When a rank is named, and what as the cause."""

from __future__ import annotations

import pytest

from tests.support.job_views import sentences, view
from tests.support.jobs import CULPRIT, Job, Op, ddp
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views.distributed.build import build


@pytest.mark.parametrize(("slow_us", "kind"), [(45.0, "balanced"), (90.0, "straggler")])
def test_a_delay_of_a_fiftieth_of_the_step_is_worth_a_name(slow_us: float, kind: str) -> None:
    """A step takes 3.2 ms: 64 us."""
    payload = build(Job(8, ddp(8), straggler=4, slow_us=slow_us, jitter_us=0.0).members(), NoParams())
    assert payload.verdict.kind == kind
    assert payload.stragglers[0].rank == 4  # the table lists the delay all the same


@pytest.mark.parametrize(
    ("ranks", "late", "kind"),
    [(2, 1, "straggler"), (7, 2, "balanced"), (8, 2, "straggler"), (11, 4, "balanced"), (12, 3, "straggler")],
)
def test_stragglers_are_at_most_a_quarter_of_the_ranks_or_one(ranks: int, late: int, kind: str) -> None:
    """Each of the late ranks computes before a collective of its own, and so delays all by as much."""
    everyone = tuple(range(ranks))
    program = [
        op
        for rank in range(late)
        for op in (
            Op("allreduce", (rank,), f"rank {rank} alone", compute_us=5000),
            Op("allreduce", everyone, "0"),
        )
    ]
    payload = view(Job(ranks, program, jitter_us=0.0))
    assert {row.rank for row in payload.stragglers if row.cost_ns > 3_000_000} == set(range(late))
    assert payload.verdict.kind == kind


@pytest.mark.parametrize(
    ("share", "cause"),
    [
        (0.15, "rank 2 spends 8.50 ms per step in other communication"),
        (0.25, f"rank 2's host spends 2.50 ms per step in {CULPRIT}"),
    ],
)
def test_a_fifth_of_the_difference_is_a_cause(share: float, cause: str) -> None:
    """Rank 2 is 10 ms late: a share of it in one operator, the rest in a collective of its own."""
    alone = [
        Op("allreduce", (rank,), f"rank {rank} alone", 10, 10_000 * (1 - share) if rank == 2 else 20)
        for rank in range(4)
    ]
    program = [*alone, Op("allreduce", (0, 1, 2, 3), "0")]
    payload = view(Job(4, program, straggler=2, slow_us=10_000 * share, jitter_us=0.0))
    assert f"Meanwhile {cause};" in sentences(payload)
