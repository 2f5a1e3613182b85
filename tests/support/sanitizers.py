"""Build the fuzzers of native/ with the address and undefined-behavior sanitizers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

_SOURCES = Path(__file__).parents[2] / "native"
_OPTIONS = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def build_fuzzer(source: str, folder: Path) -> Path:
    """Return the program of a source in native/, built in `folder`; skip the test without a suitable compiler."""
    for compiler in filter(shutil.which, ("clang", "gcc", "cc")):
        command = [compiler, *_OPTIONS, str(_SOURCES / source), "-o", str(folder / "fuzz")]
        if subprocess.run(command, capture_output=True).returncode == 0:
            return folder / "fuzz"
    pytest.skip("no compiler with sanitizers")
