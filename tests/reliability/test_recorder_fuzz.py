"""Damaged flight recorders under the address and undefined-behavior sanitizers."""

from __future__ import annotations

import pickle
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.dumps import hung_job

FUZZER = Path(__file__).parents[2] / "native" / "fuzz_recorder.c"
SANITIZE = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
INPUTS, LONG_INPUTS = 3_000, 1_000_000


@pytest.mark.slow
def test_damaged_recorders_stay_within_their_bytes(tmp_path: Path, long: bool) -> None:
    """`--long`: a million of them."""
    for compiler in filter(shutil.which, ("clang", "gcc", "cc")):
        command = [compiler, *SANITIZE, str(FUZZER), "-o", str(tmp_path / "fuzz")]
        if subprocess.run(command, capture_output=True).returncode == 0:
            break
    else:
        pytest.skip("no compiler with sanitizers")
    job = hung_job().message("send", 0, 1).batch(0, [("send", 1), ("recv", 2)], done=False)
    files = []
    for protocol in (2, 4, 5):
        file = tmp_path / f"{protocol}.pickle"
        file.write_bytes(pickle.dumps(job.content(0), protocol))
        files.append(str(file))
    count = LONG_INPUTS if long else INPUTS
    done = subprocess.run([str(tmp_path / "fuzz"), str(count), "1", *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout.split()[0]) == count and int(done.stdout.split()[2]) > count // 10
