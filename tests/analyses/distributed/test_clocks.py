"""How the clocks of a job are aligned, and with which error."""

from __future__ import annotations

import msgspec
import pytest

from tests.support.jobs import BASE_NS, Job, ddp, tensor_and_data_parallel
from torch_tb_profiler.analyses.distributed.clocks import UNKNOWN_ERROR_NS, RankClocks, align_clocks
from torch_tb_profiler.analyses.distributed.job import RankSource, build_job
from torch_tb_profiler.analyses.distributed.matching import match_collectives
from torch_tb_profiler.model.trainer import ClockSync


def aligned_clocks(ranks: int, hosts: tuple[str | None, ...] | None = None, **planted: int) -> RankClocks:
    """Return the clocks of a job in which some are ahead by so many ns (`rank1=...`)."""
    ahead = {int(name[4:]): ns for name, ns in planted.items()}
    members = Job(ranks, ddp(ranks), jitter_us=0.0, clock_ns=ahead).members()
    sources = [
        RankSource(member.worker, member.rank, (hosts or (None,) * ranks)[i], member.result, member.details)
        for i, member in enumerate(members)
        if member.result
    ]
    job = build_job(sources)
    return align_clocks(job, match_collectives(job))


def test_a_single_rank_is_the_reference_without_error() -> None:
    (clock,) = aligned_clocks(1).clocks
    assert (clock.method, clock.offset, clock.residual, clock.ends, clock.shift) == ("reference", 0, 0, 0, 0)


def test_the_error_of_the_reference_is_that_of_the_others() -> None:
    first, second = aligned_clocks(2).clocks
    assert (first.method, second.method) == ("reference", "base_time")
    assert first.residual is not None and second.residual is not None
    assert 0 <= first.residual <= second.residual < 1000  # ends scatter by half a microsecond
    assert first.ends == second.ends == 9


@pytest.mark.parametrize(
    ("ahead", "hosts", "method"),
    [
        (15_000, None, "base_time"),  # within the usual difference of ends
        (25_000, None, "collective_ends"),
        (15_000, ("a", "a"), "base_time"),
        (900_000, ("a", "a"), "collective_ends"),  # one host should have one clock, but hasn't
        (900_000, ("a", "b"), "collective_ends"),
    ],
)
def test_a_clock_is_corrected_where_the_ends_show_that_it_is_off(
    ahead: int, hosts: tuple[str, str] | None, method: str
) -> None:
    aligned = aligned_clocks(2, hosts, rank1=ahead)
    _, second = aligned.clocks
    assert second.method == method
    assert second.offset == (0 if method == "base_time" else pytest.approx(-ahead, abs=1000))
    assert aligned.origin is not None and abs(aligned.origin - BASE_NS) < 2 * 10**9


def test_a_correction_below_the_threshold_is_part_of_the_error() -> None:
    _, second = aligned_clocks(2, rank1=15_000).clocks
    assert second.residual == pytest.approx(15_000, abs=1000)


def test_the_processes_of_a_host_share_one_correction() -> None:
    """Their ends differ by a few microseconds; their clock is one."""
    aligned = aligned_clocks(4, ("a", "a", "b", "b"), rank2=5_000_000, rank3=5_004_000)
    _, _, third, fourth = aligned.clocks
    assert third.offset == fourth.offset == pytest.approx(-5_002_000, abs=1000)
    assert third.residual == pytest.approx(2000, abs=1000)


def test_the_error_of_a_clock_without_shared_ends_is_unknown() -> None:
    members = Job(4, tensor_and_data_parallel(4, 2)[:6]).members()  # two pairs that never meet
    job = build_job(
        [
            RankSource(member.worker, member.rank, None, member.result, member.details)
            for member in members
            if member.result
        ]
    )
    aligned = align_clocks(job, match_collectives(job))
    assert [clock.residual is None for clock in aligned.clocks] == [False, False, True, True]
    assert aligned.residuals().tolist()[2:] == [UNKNOWN_ERROR_NS] * 2


AHEAD = {0: 0, 1: 400_000_000, 2: -3_000_000_000, 3: 7_000_000_000}
MEETING_NS = BASE_NS + 250_000_000
"""Before the profiler begins."""


def synchronize_pairs(recording: tuple[int, ...], error: int = 7_000) -> RankClocks:
    """Return the clocks of two pairs that share no collective.

    recording  ranks that record when a trainer let all ranks meet
    """
    members = Job(4, tensor_and_data_parallel(4, 2)[:6], jitter_us=0.0, clock_ns=AHEAD).members()
    sources = []
    for member in members:
        assert member.result is not None and member.rank is not None
        start = member.result.base_ns + member.result.trace_start_ns
        sync = ClockSync(MEETING_NS + AHEAD[member.rank] - start, error) if member.rank in recording else None
        sources.append(
            RankSource(
                member.worker, member.rank, None, msgspec.structs.replace(member.result, sync=sync), member.details
            )
        )
    job = build_job(sources)
    return align_clocks(job, match_collectives(job))


def test_the_meeting_of_all_ranks_is_one_moment_on_every_clock() -> None:
    found = synchronize_pairs((0, 1, 2, 3)).clocks
    assert [clock.method for clock in found] == ["reference", *3 * ["clock_sync"]]
    assert [clock.offset for clock in found] == [-AHEAD[rank] for rank in range(4)]
    # All started to record at about the same moment, however their clocks differ.
    shifts = [clock.shift for clock in found if clock.shift is not None]
    assert len(shifts) == 4 and max(shifts) - min(shifts) < 10_000_000
    # The ends of collectives with rank 0 are a better measure than the barrier; the other pair has only that.
    assert found[1].residual is not None and found[1].residual < 1_000
    assert [clock.residual for clock in found[2:]] == [14_000, 14_000]


def test_a_rank_that_records_no_meeting_stays_at_its_time_of_day() -> None:
    found = synchronize_pairs((0, 2)).clocks
    assert [clock.method for clock in found] == ["reference", "collective_ends", "clock_sync", "base_time"]
    assert found[1].offset == pytest.approx(-AHEAD[1], abs=1000)


def test_the_meeting_is_ignored_if_the_reference_did_not_record_it() -> None:
    assert {clock.method for clock in synchronize_pairs((1, 2, 3)).clocks} == {
        "reference",
        "collective_ends",
        "base_time",
    }


def test_shared_ends_that_contradict_the_meeting_correct_it() -> None:
    """A barrier may be left late, so collectives are more reliable."""
    members = Job(2, ddp(2), jitter_us=0.0, clock_ns={1: 5_000_000}).members()
    sources = []
    for member in members:
        assert member.result is not None
        start = member.result.base_ns + member.result.trace_start_ns
        late = 800_000 if member.rank else 0
        own = 5_000_000 if member.rank else 0
        sync = ClockSync(MEETING_NS + own + late - start, 7_000)
        sources.append(
            RankSource(
                member.worker, member.rank, None, msgspec.structs.replace(member.result, sync=sync), member.details
            )
        )
    job = build_job(sources)
    _, second = align_clocks(job, match_collectives(job)).clocks
    assert second.method == "collective_ends"
    assert second.offset == pytest.approx(-5_000_000, abs=1000)
