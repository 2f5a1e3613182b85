"""How long program and package take to start, as a ratio to an empty Python: `python benchmarks/startup.py`.

User time is the figure of a busy machine; the ratio holds on fast and slow machines alike. With `--trace FILE` it
also says what a kept Overview of that file takes, and `summary` when the file is read and when it is in the cache,
in user time of all processes.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from statistics import median
from time import perf_counter

ROUNDS = 15


def main() -> None:
    """Print the median user seconds of each command and its ratio to the empty program's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trace", help="a trace to sum up")
    options = parser.parse_args()
    empty = seconds("-c", "pass")
    print(f"{'python -c pass':28} {empty:.3f} s")
    for title, *arguments in (
        ("import torch_tb_profiler", "-c", "import torch_tb_profiler"),
        ("torch-tb-profiler --help", "-m", "torch_tb_profiler", "--help"),
        ("torch-tb-profiler --version", "-m", "torch_tb_profiler", "--version"),
    ):
        taken = seconds(*arguments)
        print(f"{title:28} {taken:.3f} s {taken / empty:5.1f}x")
    if options.trace:
        with tempfile.TemporaryDirectory() as cache:
            os.environ["TORCH_PROFILER_CACHE_DIR"] = cache
            arguments_of_view = ("-m", "torch_tb_profiler", "view", "overview", options.trace)
            _run(arguments_of_view)
            _run(arguments_of_view)
            taken = seconds(*arguments_of_view)
            print(f"{'view overview, kept':28} {taken:.3f} s {taken / empty:5.1f}x")
        with tempfile.TemporaryDirectory() as cache:
            os.environ["TORCH_PROFILER_CACHE_DIR"] = cache
            for title in ("summary", "summary, cached", "summary, cached again"):
                began, before = perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
                _run(("-m", "torch_tb_profiler", "summary", options.trace))
                user = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
                print(f"{title:28} {perf_counter() - began:.2f} s, user {user:.2f} s")


def seconds(*arguments: str) -> float:
    """Return the median user time of a fresh interpreter."""
    return median(_once(arguments) for _ in range(ROUNDS))


def _once(arguments: tuple[str, ...]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    _run(arguments)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def _run(arguments: tuple[str, ...]) -> None:
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)


if __name__ == "__main__":
    main()
