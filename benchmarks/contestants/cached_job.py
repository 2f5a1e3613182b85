"""What the first page of a simulated job takes in a server that has just started, by ranks: built, and again.

    python -m benchmarks.contestants.cached_job --ranks 1000 10000 --steps 150

What loading keeps of every rank is in the cache, as if all traces had been read (`tests.support.simulation`).
Every server is a process of its own; times are of its processor, from its start to its end. *First* builds the
answer about the whole job from what is kept of its ranks, *again* is the next server.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.simulation.cached_jobs import cache_job
from torch_tb_profiler.cache import Cache


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1000])
    parser.add_argument("--steps", type=int, default=150, help="four operations each")
    options = parser.parse_args()
    print("| ranks | operations each | first s | again s | payload KB | memory MB: first | again |")
    print("|---|---|---|---|---|---|---|")
    for ranks in options.ranks:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            cache_job(place / "log" / "job", Cache(str(place / "cache"), 1 << 40), ranks, options.steps)
            (first, first_mb, size), (again, again_mb, _) = (ask(place) for _ in range(2))
        cells = f"{ranks:,}", f"{4 * options.steps}", f"{first:.1f}", f"{again:.1f}", f"{size / 1e3:.0f}"
        print(f"| {' | '.join(cells)} | {first_mb:.0f} | {again_mb:.0f} |", flush=True)


def ask(place: Path) -> tuple[float, float, int]:
    """Return processor seconds, megabytes, and bytes of the answer of a process that shows the job."""
    command = [sys.executable, "-m", "torch_tb_profiler", "view", "distributed", str(place / "log")]
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(
            command, stdout=out, env={**os.environ, "TORCH_PROFILER_CACHE_DIR": str(place / "cache")}
        )
        _, status, usage = os.wait4(process.pid, 0)
        assert status == 0, status
        return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, out.seek(0, os.SEEK_END)


if __name__ == "__main__":
    main()
