"""Runs out of memory on a GPU, and writes the memory snapshot of that moment.

    python examples/run_out_of_memory.py --logdir log/out_of_memory

The loop keeps the loss of each step with its graph, and so the activations of all steps. Memory names the line
that keeps them. Only a part of the GPU is used, so that it takes a few seconds.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from torch import Tensor, nn

MIB = 1 << 20


class Model(nn.Module):
    """A few layers, each of which keeps its input for the backward pass."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x.square().mean()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logdir", type=Path, default=Path("log/out_of_memory"))
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--limit", type=int, default=2048, help="MiB that this process may reserve")
    options = parser.parse_args()

    options.logdir.mkdir(parents=True, exist_ok=True)
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(options.limit * MIB / total)
    torch.cuda.memory._record_memory_history(max_entries=100_000)
    model = Model(options.width, options.layers).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    losses: list[Tensor] = []
    steps = 0
    try:
        while True:
            loss = model(torch.randn(options.rows, options.width, device="cuda"))
            loss.backward(retain_graph=True)
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss)  # with its graph: loss.item() would keep a number
            steps += 1
    except torch.OutOfMemoryError as error:
        torch.cuda.memory._dump_snapshot(str(options.logdir / "rank0_memory_snapshot.pickle"))
        stats = torch.cuda.memory_stats()
        counted = {
            "steps": steps,
            "error": str(error),
            "allocated": stats["allocated_bytes.all.current"],
            "reserved": stats["reserved_bytes.all.current"],
            "inactive": stats["inactive_split_bytes.all.current"],
            "peak": stats["allocated_bytes.all.peak"],
        }
        (options.logdir / "counted.json").write_text(json.dumps(counted, indent=1), encoding="utf-8")
    print(f"out of memory after {steps} steps; see {options.logdir}")


if __name__ == "__main__":
    main()
