"""Drawn columns and jobs under the address and undefined-behavior sanitizers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.sanitizers import build_fuzzer

JOBS, LONG_JOBS = 20_000, 1_000_000


@pytest.mark.slow
def test_drawn_jobs_stay_within_their_columns(tmp_path: Path, long: bool) -> None:
    """Every result is what its definition says. `--long`: a million jobs."""
    count = LONG_JOBS if long else JOBS
    done = subprocess.run(
        [str(build_fuzzer("fuzz_job.c", tmp_path)), str(count), "1"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout.split()[0]) == count and int(done.stdout.split()[2]) > count // 2


@pytest.mark.slow
def test_drawn_networks_are_what_their_operations_say(tmp_path: Path, long: bool) -> None:
    """`--long`: a million of them."""
    count = LONG_JOBS if long else JOBS
    done = subprocess.run(
        [str(build_fuzzer("fuzz_network.c", tmp_path)), str(count), "1"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    jobs, disagree = (int(done.stdout.split()[place]) for place in (0, 2))
    assert jobs == count and count // 4 < disagree < count
