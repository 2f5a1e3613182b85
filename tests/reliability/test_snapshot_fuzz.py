"""Damaged snapshots under the address and undefined-behavior sanitizers."""

from __future__ import annotations

import pickle
import subprocess
from pathlib import Path

import pytest

from tests.support.sanitizers import build_fuzzer
from tests.support.snapshots import snapshot

INPUTS, LONG_INPUTS = 5_000, 1_000_000


@pytest.fixture(scope="module")
def fuzzer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_fuzzer("fuzz_snapshot.c", tmp_path_factory.mktemp("fuzzer"))


@pytest.mark.slow
def test_damaged_snapshots_stay_within_their_bytes(fuzzer: Path, tmp_path: Path, long: bool) -> None:
    """`--long`: a million of them."""
    files = []
    for protocol in (2, 4, 5):
        file = tmp_path / f"{protocol}.pickle"
        file.write_bytes(pickle.dumps(snapshot(), protocol))
        files.append(str(file))
    count = LONG_INPUTS if long else INPUTS
    done = subprocess.run([str(fuzzer), str(count), "1", *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout.split()[0]) == count and int(done.stdout.split()[2]) > count // 2
