"""Run a contestant and watch the memory of its whole process tree."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_PERIOD_SECONDS = 0.05
_BYTECODE = Path(tempfile.gettempdir()) / "torch-tb-profiler-benchmarks"


@dataclass(frozen=True)
class Measurement:
    """What a contestant printed, and the peak of its processes' memory together (MB, shared pages once)."""

    facts: dict[str, float]
    peak_mb: float


def run(command: Sequence[str]) -> Measurement:
    """Run to its end; RuntimeError with what it wrote if it fails."""
    process = subprocess.Popen(
        command, env=environment_after_installation(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    done = threading.Event()
    peaks = [0.0]

    def watch() -> None:
        while not done.wait(_PERIOD_SECONDS):
            peaks.append(sum(map(pss_mb, _tree(process.pid))))

    watcher = threading.Thread(target=watch)
    watcher.start()
    out, err = process.communicate()
    done.set()
    watcher.join()
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{err}")
    return Measurement(json.loads(out.splitlines()[-1]), max(peaks))


def environment_after_installation() -> dict[str, str]:
    """Return this process's environment, in which modules are compiled once, whatever it or the checkout says."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**environment, "PYTHONPYCACHEPREFIX": str(_BYTECODE)}


def _tree(pid: int) -> list[int]:
    """Return a process and all below it."""
    found = [pid]
    for parent in found:
        try:
            for task in Path(f"/proc/{parent}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
        except OSError:
            continue  # it has ended
    return found


def pss_mb(pid: int) -> float:
    """Return the proportional set size: a page that n processes share counts 1/n for each of them."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024 / 1e6
