"""The native reader under the address and undefined-behavior sanitizers: it stays within its bytes."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.ingest.test_mutations import KINETO

FUZZER = Path(__file__).parents[2] / "native" / "fuzz.c"
INPUTS, LONG_INPUTS = 5_000, 1_000_000
SANITIZE = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def compiled(folder: Path) -> Path | None:
    """The fuzzer, None if no compiler of this machine has both sanitizers."""
    for compiler in filter(shutil.which, ("clang", "gcc", "cc")):
        command = [compiler, *SANITIZE, str(FUZZER), "-o", str(folder / "fuzz")]
        if subprocess.run(command, capture_output=True).returncode == 0:
            return folder / "fuzz"
    return None


@pytest.mark.slow
def test_damaged_blocks_stay_within_their_bytes(tmp_path: Path, long: bool) -> None:
    """`--long`: a million of them."""
    fuzzer = compiled(tmp_path)
    if fuzzer is None:
        pytest.skip("no compiler with sanitizers")
    events = json.loads(KINETO)["traceEvents"]
    events = events[:12] + events[-30:]
    for name, text in (("compact", json.dumps(events)), ("spread", json.dumps(events, indent=1))):
        (tmp_path / name).write_text(text)
    inputs = LONG_INPUTS if long else INPUTS
    command = [str(fuzzer), str(inputs), "1", str(tmp_path / "compact"), str(tmp_path / "spread")]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    assert done.returncode == 0, done.stderr[-3000:]
    read = int(done.stdout.split()[-4])
    assert inputs // 20 < read < inputs  # neither all refused nor all fine: both sides were under test
