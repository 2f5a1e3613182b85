"""How long the command line takes to start, as a ratio to an empty Python: `python benchmarks/startup.py`.

The ratio holds on fast and slow machines alike.
"""

from __future__ import annotations

import subprocess
import sys
from statistics import median
from time import perf_counter

ROUNDS = 15


def main() -> None:
    """Print the median seconds of each command and its ratio to the empty program's."""
    empty = seconds("-c", "pass")
    print(f"{'python -c pass':24} {empty:.3f} s")
    for option in ("--help", "--version"):
        taken = seconds("-m", "torch_tb_profiler", option)
        print(f"{'torch-tb-profiler ' + option:24} {taken:.3f} s {taken / empty:5.1f}x")


def seconds(*arguments: str) -> float:
    """Median wall time of a fresh interpreter."""
    return median(_once(arguments) for _ in range(ROUNDS))


def _once(arguments: tuple[str, ...]) -> float:
    began = perf_counter()
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
    return perf_counter() - began


if __name__ == "__main__":
    main()
