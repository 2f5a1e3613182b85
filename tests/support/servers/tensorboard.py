"""A real TensorBoard process, for tests."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.waiting import PATIENCE

UNCHANGED_POLL_S = 60.0
"""From one listing to the next of folders that no test changes: each listing is work, as long as tests run."""


@contextmanager
def tensorboard(*arguments: str, cache: Path, poll: float = 0.5) -> Iterator[str]:
    """Start TensorBoard on a free port, and yield its address; the process is gone afterwards.

    poll  seconds from one listing of the folders to the next
    """
    command = [sys.executable, "-m", "tensorboard.main", "--port", "0", "--load_fast", "false", *arguments]
    environment = {
        **os.environ,
        "TORCH_PROFILER_CACHE_DIR": str(cache),
        "TORCH_PROFILER_POLL_SECONDS": str(poll),
    }
    with start_tensorboard(command, environment) as address:
        yield address


@contextmanager
def start_tensorboard(
    command: Sequence[str], environment: Mapping[str, str], folder: Path | None = None
) -> Iterator[str]:
    """Run what starts a TensorBoard, and yield its address; all its processes are gone afterwards."""
    process = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env=environment,
        cwd=folder,
        start_new_session=True,
    )
    output: list[str] = []
    try:
        yield _address(process, output)
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(PATIENCE)
        assert process.stderr is not None
        process.stderr.close()
    warnings = [line + after for line, after in itertools.pairwise([*output, ""]) if "become an error" in line]
    assert not warnings, "TensorBoard warns about responses:\n" + "".join(warnings)


def read_json(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=PATIENCE) as response:
        return json.load(response)


def _address(process: subprocess.Popen[str], output: list[str]) -> str:
    """Return where TensorBoard listens; from then on a thread collects what it prints in `output`."""
    assert process.stderr is not None
    for line in process.stderr:
        output.append(line)
        if match := re.search(r"at (http://\S+)", line):
            # What it says from now on must be read, or it would block on a full pipe.
            threading.Thread(target=_drain, args=(process, output), daemon=True).start()
            return match.group(1).rstrip("/")
    raise AssertionError("TensorBoard did not start:\n" + "".join(output))


def _drain(process: subprocess.Popen[str], output: list[str]) -> None:
    assert process.stderr is not None
    try:
        output.extend(process.stderr)
    except ValueError:
        return  # closed at the end of the test
