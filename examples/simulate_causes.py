"""Simulates training on one H100 with one cause of waiting after the other, and without it: nothing is measured.

    python examples/simulate_causes.py --logdir log

For a machine without GPUs, and with a known truth: the table has what the critical path of the run with the cause
says that removing it brings, and how much shorter the simulated steps are without it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from predictions import Planted, predict, show
from simulation import kernels
from simulation.machine import EPOCH_NS, Process

STEPS, LAYERS, WIDTH, TOKENS = 6, 24, 4096, 8192
SLEEP_NS, FREE_NS = 15_000_000, 3_000_000
SMALL_KERNELS = 1_000

CAUSES = [
    Planted("sleep", "wait", "no sleep between two operators"),
    Planted("item", "sync:aten::_local_scalar_dense", "read the loss once a step, not after every layer"),
    Planted("cuda_free", "allocator", "no `cudaFree` in the step"),
    Planted("small_kernels", "operator:aten::add_", f"one kernel instead of {SMALL_KERNELS:,} small ones"),
]


class Loop:
    """Steps of a stack of linear layers; `cause`: what is planted, "" for nothing."""

    def __init__(self, process: Process, cause: str) -> None:
        self.process, self.cause = process, cause

    def step(self, number: int) -> None:
        process = self.process
        with process.annotation(f"ProfilerStep#{number}"), process.frame("train.py(12): train_step"):
            for _ in range(SMALL_KERNELS if self.cause == "small_kernels" else 1):
                with process.operator("aten::add_", [[WIDTH], [WIDTH], []]):
                    process.launch(kernels.elementwise("add", WIDTH, 2))
            for _ in range(LAYERS):
                self._layer()
            if self.cause == "sleep":
                with process.frame("<built-in function sleep>", cost=0):
                    process.spend(SLEEP_NS)
            if self.cause == "cuda_free":
                process.free_device_memory(FREE_NS)
            self._item()

    def _layer(self) -> None:
        process = self.process
        with process.operator("aten::mm", [[TOKENS, WIDTH], [WIDTH, WIDTH]]):
            process.launch(kernels.matrix_product(TOKENS, WIDTH, WIDTH, "TNT"))
        with process.operator("aten::gelu", [[TOKENS, WIDTH]]):
            process.launch(kernels.elementwise("gelu", TOKENS * WIDTH, 1))
        if self.cause == "item":
            self._item()

    def _item(self) -> None:
        process = self.process
        with process.operator("aten::item", [[]]), process.operator("aten::_local_scalar_dense", [[]]):
            process.copy("DtoH (Device -> Pinned)", 4, 25)
            process.synchronize()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logdir", type=Path, default=Path("log"))
    options = parser.parse_args()
    for planted in CAUSES:
        for suffix, cause in (("", planted.name), ("_removed", "")):
            process = Process(0, seed=0)
            loop = Loop(process, cause)
            for number in range(STEPS):
                loop.step(number)
            folder = options.logdir / f"{planted.name}{suffix}"
            folder.mkdir(parents=True, exist_ok=True)
            process.write(folder / f"rank0.{EPOCH_NS // 10**6}.pt.trace.json.gz", 1)
    show([predict(options.logdir, CAUSES)])


if __name__ == "__main__":
    main()
