"""Trains in two processes that exchange gradients (DistributedDataParallel); each profiles itself.

    python examples/ddp.py --logdir log/ddp

Uses NCCL if there is a GPU per process, otherwise Gloo on the CPU.
"""

from __future__ import annotations

import argparse
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from common import profiler
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def train(rank: int, world: int, meeting_point: str, logdir: str, steps: int) -> None:
    """Run the work of one process."""
    on_gpu = torch.cuda.device_count() >= world
    place = torch.device("cuda", rank) if on_gpu else torch.device("cpu")
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // world))
    backend = "nccl" if on_gpu else "gloo"
    dist.init_process_group(backend, init_method=f"file://{meeting_point}", rank=rank, world_size=world)
    torch.manual_seed(rank)
    model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))
    model = DistributedDataParallel(model.to(place), device_ids=[rank] if on_gpu else None)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with profiler(logdir, worker=f"rank{rank}", steps=steps) as prof:
        for _ in range(steps + 2):
            inputs = torch.randn(64, 256, device=place)
            labels = torch.randint(10, (64,), device=place)
            loss = nn.functional.cross_entropy(model(inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            prof.step()
    dist.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logdir", default="log/ddp")
    parser.add_argument("--world", type=int, default=2, help="processes")
    parser.add_argument("--steps", type=int, default=4, help="steps to record")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        meeting_point = os.path.join(folder, "meet")
        mp.spawn(train, (options.world, meeting_point, options.logdir, options.steps), nprocs=options.world)
    print(f"traces written to {options.logdir}")


if __name__ == "__main__":
    main()
