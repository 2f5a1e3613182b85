"""A planted straggler is payload, with its delay and what it did meanwhile."""

from __future__ import annotations

import pytest

from tests.support.job_views import sentences, view
from tests.support.jobs import CULPRIT, Job, JobOp, ddp, fsdp, pipeline, tensor_and_data_parallel
from torch_tb_profiler.views._shared.text import plain


@pytest.mark.parametrize(
    ("ranks", "program"),
    [
        (2, ddp(2)),
        (8, ddp(8)),
        (64, ddp(64)),
        (8, fsdp(8)),
        (4, pipeline(4)),
        (16, tensor_and_data_parallel(16, 4)),
    ],
    ids=["ddp2", "ddp8", "ddp64", "fsdp8", "pipeline4", "tp4dp4"],
)
def test_the_planted_straggler_is_named(ranks: int, program: tuple[JobOp, ...]) -> None:
    culprit = ranks // 2
    payload = view(Job(ranks, program, straggler=culprit))
    assert (payload.verdict.kind, payload.verdict.rank) == ("straggler", culprit)
    assert f"Rank {culprit} is a straggler" in sentences(payload)
    assert f"host spends 5.00 ms per step in {CULPRIT}; the " in sentences(payload)
    assert payload.verdict.cause == "host"
    if program[0].name != "send":  # a pipeline's first stages work in the meantime
        assert payload.verdict.cost_ns == pytest.approx(5e6, rel=0.01)
    first = payload.stragglers[0]
    assert first.rank == culprit
    # 5 ms in each of three steps; in a pipeline others also wait while a stage computes as it should.
    typical_bytes = 5e6 if program[0].name == "send" else 2.5e6
    assert 14.9e6 < first.delay_ns < 15e6 + typical_bytes
    assert max(other.delay_ns for other in payload.stragglers[1:]) < typical_bytes
    assert payload.problems == []
    assert payload.mismatch_count == 0


@pytest.mark.slow
def test_one_of_a_thousand() -> None:
    payload = view(Job(1024, ddp(1024), steps=2, straggler=777))
    assert (payload.verdict.kind, payload.verdict.rank) == ("straggler", 777)
    assert payload.rank_count == payload.read_count == 1024
    (group,) = payload.group_families
    assert (group.complete, group.compared) == (1, 6)


def test_a_straggler_is_last_in_the_first_collective_of_each_step() -> None:
    payload = view(Job(4, ddp(4), straggler=2, jitter_us=0.0))
    assert payload.heat_map is not None
    assert payload.heat_map.steps == ["1", "2", "3"]
    late = dict(zip(payload.heat_map.workers, payload.heat_map.lateness_ns, strict=True))
    assert late["host0_1002"] == [pytest.approx(5e6, abs=5e3)] * 3
    assert all(cell < 5_000 for worker, row in late.items() if worker != "host0_1002" for cell in row)  # type: ignore[operator]
    first = payload.stragglers[0]
    assert first.last >= 3
    assert first.waiting_ns < 20_000
    for other in payload.stragglers[1:]:
        assert other.waiting_ns == pytest.approx(3 * 5e6, rel=0.01)
        assert other.waiting_per_step_ns == pytest.approx(5e6, rel=0.01)


def test_what_the_straggler_did_stands_beside_the_median_rank() -> None:
    payload = view(Job(4, ddp(4), straggler=1))
    before = payload.meanwhile[0]
    assert before.rank == 1
    # Before the first collective of the recording, its step began.
    host = {share.name: share for share in before.host}
    assert host[CULPRIT].time_ns >= 3 * 4_990_000
    assert host[CULPRIT].median_ns is None
    categories = {share.name: share for share in before.categories}
    excess = categories["cpu_exec"].time_ns - (categories["cpu_exec"].median_ns or 0)
    assert excess == pytest.approx(15e6, rel=0.01)
    assert before.window_ns - before.median_window_ns == pytest.approx(15e6, rel=0.01)


def test_a_slow_device_is_distinguished_from_a_slow_host() -> None:
    payload = view(Job(4, ddp(4), straggler=3, slow_kernel=True))
    assert f"rank 3's device spends 5.00 ms per step in {CULPRIT}" in sentences(payload)
    assert payload.meanwhile[0].kernels[0].name == CULPRIT


@pytest.mark.parametrize("program", [ddp(8), fsdp(8)], ids=["ddp", "fsdp"])
def test_no_delay_is_attributed_to_ranks_that_are_alike(program: tuple[JobOp, ...]) -> None:
    payload = view(Job(8, program))
    assert payload.verdict.kind == "balanced"
    assert payload.verdict.rank is None


def test_the_lateness_of_a_rank_that_waits_elsewhere_is_not_its_own() -> None:
    """Rank 5 holds up its tensor-parallel neighbors, which then come late to their data-parallel groups."""
    payload = view(Job(16, tensor_and_data_parallel(16, 4), straggler=5))
    delays = {row.rank: row.delay_ns for row in payload.stragglers}
    assert delays[5] > 14e6
    assert max(delays[neighbor] for neighbor in (4, 6, 7)) < 1e6
    costs = {row.rank: row.cost_ns for row in payload.stragglers}
    assert costs[5] == pytest.approx(5e6, rel=0.01)
    assert max(cost for rank, cost in costs.items() if rank != 5) < 20_000
    (neighbor,) = (row for row in payload.stragglers if row.rank == 4)
    assert (neighbor.cause, neighbor.held_up_by, plain(neighbor.why)) == (
        "held_up",
        "host0_1005",
        "waits for rank 5",
    )


def test_a_rank_whose_file_lacks_a_collective_is_not_late_before_the_next() -> None:
    """What it worked before both then seems to be before one of them."""
    text = sentences(view(Job(2, ddp(2), steps=6, lost=frozenset({(1, 1)}))))
    assert "late once" not in text and text.startswith("The ranks are balanced; no straggler.")
