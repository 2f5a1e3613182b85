"""A log folder of many runs: how long until TensorBoard shows the first page, and what it has parsed by then.

    python -m benchmarks.logdir --runs 1000 --workers 8

Goals: the folder is listed within 2 s of being asked, the first page is there within 1 s, nothing is parsed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

ROUTE = "/data/plugin/pytorch_profiler"
PAGE = ("runs", "workers", "views", "state")
"""What the page asks for before it shows a run."""


def write_log(folder: Path, runs: int, workers: int) -> None:
    events = [{"ph": "X", "cat": "cpu_op", "name": "op", "pid": 1, "tid": 1, "ts": i, "dur": 1} for i in range(50)]
    content = gzip.compress(json.dumps({"schemaVersion": 1, "traceEvents": events}).encode())
    for run in range(runs):
        place = folder / f"run{run:04}"
        place.mkdir(parents=True)
        for worker in range(workers):
            file = place / f"rank{worker}.{1700000000000 + run}.pt.trace.json.gz"
            file.write_bytes(content)
            os.utime(file, (1.7e9, 1.7e9))  # else it might still be being written, and is waited for


def time_call(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=60) as answer:
        return json.loads(answer.read())


def time_listing(log: Path) -> float:
    """Return the seconds that a first listing takes."""
    from torch_tb_profiler.base.settings import Settings
    from torch_tb_profiler.session import Root, Session

    with Session([Root(str(log))], Settings.from_environment()) as session:
        return time_call(session.scan)[0]


def serve(log: Path, cache: Path) -> dict[str, Any]:
    """Return the seconds of each request of the first page, from a TensorBoard that just listed the folder."""
    command = [
        sys.executable,
        "-m",
        "tensorboard.main",
        "--load_fast",
        "false",
        "--port",
        "0",
        "--logdir",
        str(log),
    ]
    environ = {**os.environ, "TORCH_PROFILER_CACHE_DIR": str(cache)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environ) as process:
        assert process.stderr is not None
        line = next(line for line in process.stderr if " at http" in line)
        url = line.partition(" at ")[2].split()[0].rstrip("/") + ROUTE
        seconds: dict[str, Any] = {}
        seconds["until listed"], runs = time_call(lambda: _until_listed(url))
        for route in PAGE:
            seconds[route] = statistics.median(time_call(partial(get, f"{url}/{route}"))[0] for _ in range(5))
        seconds["parsed"] = sum(run["files"]["ready"] for run in runs["runs"])
        seconds["first page of the last run"] = time_call(lambda: _until_ready(url, runs["runs"][-1]["name"]))[0]
        seconds["memory MB"] = _resident(process.pid) / 2**20
        process.terminate()
    return seconds


def _until_listed(url: str) -> Any:
    while (runs := get(f"{url}/runs"))["scanning"]:
        time.sleep(0.02)
    return runs


def _until_ready(url: str, run: str) -> Any:
    while (answer := get(f"{url}/view/overview/preview?run={run}"))["state"] != "ready":
        time.sleep(0.02)
    return answer


def _resident(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=8)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        write_log(log, wanted.runs, wanted.workers)
        rows = {
            "listing": statistics.median(time_listing(log) for _ in range(3)),
            **serve(log, Path(folder) / "cache"),
        }
    print(f"{wanted.runs} runs of {wanted.workers} workers\n\n| | |\n|---|---|")
    for name, value in rows.items():
        print(f"| {name} | {value:.3f} |" if isinstance(value, float) else f"| {name} | {value} |")


if __name__ == "__main__":
    main()
