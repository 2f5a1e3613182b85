"""What the first page of a simulated job takes in a server that has just started, by ranks: built, and again.

    python -m benchmarks.contestants.cached_job --ranks 1000 10000 --steps 150

What loading keeps of every rank is in the cache, as if all traces had been read (`tests.support.simulation`).
Every server is a process of its own, timed from its start to its end: on the clock, and on the processors that it
uses, of which there may be two at once. *First* builds the answer about the whole job from what is kept of its
ranks, *again* is the next server. Beside other work only the processors say how much there was to do.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from tests.support.simulation.cached_jobs import cache_job
from torch_tb_profiler.cache import Cache


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1000])
    parser.add_argument("--steps", type=int, default=150, help="four operations each")
    options = parser.parse_args()
    print("| ranks | operations each | first s | processor s | again s | processor s | KB | MB: first | again |")
    print("|---|---|---|---|---|---|---|---|---|")
    for ranks in options.ranks:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            cache_job(place / "log" / "job", Cache(str(place / "cache"), 1 << 40), ranks, options.steps)
            first, again = ask(place), ask(place)
        times = [f"{each.seconds:.2f} | {each.processor:.2f}" for each in (first, again)]
        cells = f"{ranks:,}", f"{4 * options.steps}", *times, f"{first.size / 1e3:.0f}"
        print(f"| {' | '.join(cells)} | {first.megabytes:.0f} | {again.megabytes:.0f} |", flush=True)


class Asked(NamedTuple):
    """Seconds on the clock and of the processors, megabytes, and bytes of the answer of a process."""

    seconds: float
    processor: float
    megabytes: float
    size: int


def ask(place: Path) -> Asked:
    """Ask a process that has just started to show the job."""
    command = [sys.executable, "-m", "torch_tb_profiler", "view", "distributed", str(place / "log")]
    begin = time.perf_counter()
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(
            command, stdout=out, env={**os.environ, "TORCH_PROFILER_CACHE_DIR": str(place / "cache")}
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begin
        assert status == 0, status
        processor, megabytes = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
        return Asked(seconds, processor, megabytes, out.seek(0, os.SEEK_END))


if __name__ == "__main__":
    main()
