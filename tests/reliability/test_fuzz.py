"""The reader against its kept corpus, and a fuzzer that starts from it where atheris is installed."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.reliability.fuzz_reader import read

CORPUS = Path(__file__).parent / "corpus"


@pytest.mark.parametrize("name", sorted(path.name for path in CORPUS.iterdir()))
def test_inputs_of_the_corpus_are_read(name: str) -> None:
    read((CORPUS / name).read_bytes())


@pytest.mark.long
@pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="atheris is not installed")
def test_the_fuzzer_finds_nothing_new(tmp_path: Path) -> None:
    """Fuzz for ten minutes; what is found lies in the folder that the failure names."""
    corpus = tmp_path / "corpus"
    shutil.copytree(CORPUS, corpus)
    command = [sys.executable, "-m", "tests.reliability.fuzz_reader", str(corpus)]
    command += ["-max_total_time=600", "-seed=1", f"-artifact_prefix={tmp_path}/"]
    found = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=900)
    assert found.returncode == 0, f"{tmp_path}: {found.stderr[-3000:]}"
