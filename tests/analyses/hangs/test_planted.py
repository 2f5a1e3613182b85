"""Jobs of any shape with a planted fault: the rank at fault is named, or nobody; never a rank that only waits."""

from __future__ import annotations

import random

import pytest

from tests.support.examples import examples
from tests.support.hang_faults import Fault, PlantedJob, draw_job
from torch_tb_profiler.analyses.hangs.verdict import HangVerdict, diagnose
from torch_tb_profiler.model.flight_recorder import JobDumps

SEEDS = 120
FAULTS: tuple[Fault, ...] = ("stop", "wrong_op", "wrong_size", "skip", "swap")


def hung_jobs(fault: Fault) -> list[tuple[int, PlantedJob]]:
    drawings = [(seed, draw_job(seed, fault)) for seed in range(examples(SEEDS))]
    return [(seed, planted) for seed, planted in drawings if planted is not None]


def is_fair(found: HangVerdict, planted: PlantedJob, lost: set[int]) -> bool:
    """Return whether nobody is blamed but the culprit, or a rank for its lost dump.

    Where the dumps can't tell who of several did it, the verdict says so, and the culprit is one of them.
    """
    named = set(found.culprits)
    if not named or named == {planted.culprit}:
        return True
    if found.kind in ("no_dump", "unreadable_dump"):
        return named <= lost
    return found.reason in ("no_majority", "order_or_skipped") and planted.culprit in named


@pytest.mark.parametrize("fault", FAULTS)
def test_no_victim_is_accused(fault: Fault) -> None:
    jobs = hung_jobs(fault)
    unfair = []
    for seed, planted in jobs:
        files = list(planted.job.dumps().files)
        random.Random(seed).shuffle(files)
        found = diagnose(JobDumps(tuple(files))).verdict
        if not is_fair(found, planted, set()) or not set(found.waiting) <= {*planted.waiting}:
            unfair.append((seed, planted.culprit, found))
    assert len(jobs) > examples(SEEDS) // 3 and not unfair


@pytest.mark.parametrize("fault", FAULTS)
def test_no_victim_is_accused_where_a_dump_is_missing_or_damaged(fault: Fault) -> None:
    unfair = []
    for seed, planted in hung_jobs(fault):
        ranks = list(range(planted.job.world))
        lost = random.Random(seed).choice(ranks)
        missing = planted.job.dumps([rank for rank in ranks if rank != lost])
        for job in (missing, planted.job.dumps(unreadable=[lost])):
            found = diagnose(job).verdict
            if not is_fair(found, planted, {lost}) or lost in found.waiting:
                unfair.append((seed, planted.culprit, lost, found))
    assert not unfair


@pytest.mark.parametrize("seed", [571, 833, 1242, 1513, 2174])
def test_after_one_message_a_skipped_collective_accuses_nobody(seed: int) -> None:
    planted = draw_job(seed, "skip")
    assert planted is not None and planted.job.world == 2
    found = diagnose(planted.job.dumps()).verdict
    assert (found.kind, found.culprits, found.reason) == ("unknown", (), "lost_or_skipped")


def test_a_rank_that_stopped_is_always_found() -> None:
    for seed, planted in hung_jobs("stop"):
        found = diagnose(planted.job.dumps()).verdict
        assert (found.kind, found.culprits) == ("not_joined", (planted.culprit,)), seed


def test_most_other_faults_are_found_where_most_ranks_agree() -> None:
    for fault in FAULTS[1:3]:
        verdicts = [(diagnose(planted.job.dumps()).verdict, planted.culprit) for _, planted in hung_jobs(fault)]
        correct = [found.culprits == (culprit,) for found, culprit in verdicts if found.reason != "no_majority"]
        assert sum(correct) > 0.95 * len(correct)


def test_a_job_without_a_fault_accuses_nobody() -> None:
    for seed in range(examples(SEEDS)):
        planted = draw_job(seed, "none")
        assert planted is not None and diagnose(planted.job.dumps()).verdict.kind == "finished"
