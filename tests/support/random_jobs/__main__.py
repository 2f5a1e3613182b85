"""Judge random jobs: `python -m tests.support.random_jobs --jobs 1000`; exit with 1 if one is told wrong.

A failure names its seed; `--jobs 1 --first SEED --show` draws that job again and prints all that is said of it.
"""

from __future__ import annotations

import argparse
import sys

from tests.support.random_jobs.judge import Judgment, judge_job
from tests.support.random_jobs.surfaces import JobSurfaces
from tests.support.random_jobs.truth import JobTruth
from tests.support.random_jobs.variants import draw_job

MIN_FOUND_SHARE = 0.95
"""Smallest share of the planted causes that must be found."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.support.random_jobs", description=__doc__)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first job")
    parser.add_argument("--show", action="store_true", help="print everything that is said")
    options = parser.parse_args()
    judged = []
    for seed in range(options.first, options.first + options.jobs):
        if options.show:
            _show(seed)
        judged.append(judge_job(seed))
        _report(judged[-1])
    planted = [each.found for each in judged if each.found is not None]
    wrong = sum(len(each.false) for each in judged)
    share = sum(planted) / max(len(planted), 1)
    sentences = sum(each.sentences for each in judged)
    sys.stdout.write(
        f"{len(judged)} jobs, {sentences} sentences, {wrong} of them false; "
        f"causes found in {sum(planted)} of {len(planted)} jobs that have one planted ({share:.1%})\n"
    )
    return 1 if wrong or share < MIN_FOUND_SHARE else 0


def _show(seed: int) -> None:
    plan = draw_job(seed)
    truth = JobTruth.of(plan)
    surfaces = JobSurfaces(truth)
    sys.stdout.write(
        f"{plan.kind} {plan.causes} ({truth.cause_cost:.0f} µs), shared {plan.shared} "
        f"({truth.shared_cost:.0f} µs), odd {plan.odd}, missing {plan.missing}, step {truth.step:.0f} µs\n"
    )
    for surface, rank, text in surfaces.sentences((rank, surfaces.worker(truth, rank)) for rank in plan.present):
        sys.stdout.write(f"  {surface} {rank}: {text}\n")


def _report(judgment: Judgment) -> None:
    for claim in judgment.false:
        sys.stdout.write(f"FALSE {claim}\n")
    if judgment.missed:
        sys.stdout.write(f"MISSED seed {judgment.plan.seed}: {judgment.missed}\n")


if __name__ == "__main__":
    sys.exit(main())
