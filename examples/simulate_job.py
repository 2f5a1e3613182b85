"""Simulates the traces of a job of eight H100s in which one rank waits for its data: nothing is measured.

    python examples/simulate_job.py --logdir samples

For a machine without GPUs, and as a job whose truth is known: rank 5 gets each batch `--delay` milliseconds later
than the others, all else is equal but for a jitter of host calls (8%) and kernels (0.6%).
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

from simulation.hardware import all_reduce
from simulation.machine import EPOCH_NS, Process
from simulation.transformer import Model, Pending, Trainer

FIRST_STEP = 10
LOADING_NS = 250_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logdir", type=Path, default=Path("log"))
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--late-rank", type=int, default=5)
    parser.add_argument("--delay", type=float, default=12, help="milliseconds")
    options = parser.parse_args()

    processes = [Process(rank, seed=rank) for rank in range(options.ranks)]
    trainers = [Trainer(process, Model(), options.ranks) for process in processes]
    chance = random.Random(0)
    link_free = 0.0
    for step in range(FIRST_STEP, FIRST_STEP + options.steps):
        delays = [options.delay * 1e6 * (rank == options.late_rank) for rank in range(options.ranks)]
        steps = [
            trainer.step(step, LOADING_NS * chance.lognormvariate(0, 0.2) + delay)
            for trainer, delay in zip(trainers, delays, strict=True)
        ]
        link_free = meet(processes, [next(each) for each in steps], link_free)
        for each in steps:
            next(each, None)

    folder = options.logdir / f"simulated_{options.ranks}_h100_late_rank"
    folder.mkdir(parents=True, exist_ok=True)
    for process in processes:
        process.write(folder / f"rank{process.rank}.{EPOCH_NS // 10**6}.pt.trace.json.gz", options.ranks)
    print(f"{options.ranks} simulated ranks written to {folder}")


def meet(processes: list[Process], pending: list[list[Pending]], link_free: float) -> float:
    """End the collectives in their order: each begins on arrival and lasts until the last data is through."""
    for each in zip(*pending, strict=True):
        begins = [max(ready, link_free) for _, ready, _ in each]
        end = max(begins) + all_reduce(each[0][2], len(processes))
        for process, (event, _, _), begin in zip(processes, each, begins, strict=True):
            process.finish_collective(event, begin, end)
        link_free = end + 1_000
    return link_free


if __name__ == "__main__":
    main()
