"""Drawn schedules under the address and undefined-behavior sanitizers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.sanitizers import build_fuzzer

GRAPHS, LONG_GRAPHS = 5_000, 1_000_000


@pytest.mark.slow
def test_drawn_schedules_stay_within_their_columns(tmp_path: Path, long: bool) -> None:
    """Every time is what its definition says. `--long`: a million schedules."""
    count = LONG_GRAPHS if long else GRAPHS
    done = subprocess.run(
        [str(build_fuzzer("fuzz_schedule.c", tmp_path)), str(count), "1"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout.split()[0]) == count and int(done.stdout.split()[2]) > count // 2
