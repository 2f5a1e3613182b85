"""What comparing the ranks of a simulated job takes, from what is kept of each rank to the first page.

    python -m benchmarks.contestants.simulated_ranks --ranks 64 1000 10000 --steps 150

Nodes of eight ranks reduce with their node, then with their like of all nodes, four operations a step
(`tests.support.simulation.large_jobs`). Each size runs in a process of its own; times are of its processor.
*Kept*: the operations of all ranks as the cache has them, without what came before each. *Memory*: the most that
the process has held.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

import msgspec

from tests.support.simulation.large_jobs import large_job
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views.distributed.build import build
from torch_tb_profiler.views.distributed.map import MAP, MapParams


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=[64, 1000])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.ranks[0], options.steps)))
        return
    print("| ranks | operations each | first page s | again s | map ms | payload KB | kept MB | memory MB |")
    print("|---|---|---|---|---|---|---|---|")
    for ranks in options.ranks:
        command = [sys.executable, "-m", "benchmarks.contestants.simulated_ranks", "--one", "--ranks", str(ranks)]
        done = subprocess.run(
            [*command, "--steps", str(options.steps)], check=True, stdout=subprocess.PIPE, text=True
        )
        print(f"| {' | '.join(json.loads(done.stdout))} |", flush=True)


def measure(ranks: int, steps: int) -> list[str]:
    """Measure once and return a line of the table."""
    members = large_job(ranks, steps)
    operations = [member.result.operations for member in members if member.result is not None]
    begin = time.process_time()
    payload = msgspec.json.encode(build(members, NoParams()))
    first = time.process_time()
    msgspec.json.encode(build(members, NoParams()))
    again = time.process_time()
    msgspec.json.encode(MAP.build(members, MapParams()))
    mapped = time.process_time()
    return [
        f"{ranks:,}",
        f"{len(operations[0])}",
        f"{first - begin:.2f}",
        f"{again - first:.2f}",
        f"{1e3 * (mapped - again):.0f}",
        f"{len(payload) / 1e3:.0f}",
        f"{sum(len(rank.rows) + len(rank.kinds) for rank in operations) / 1e6:.0f}",
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}",
    ]


if __name__ == "__main__":
    main()
