"""Trains a small network that torch.compile compiles, and records where its kernels come from.

    OMP_NUM_THREADS=1 python examples/train_compiled.py --logdir log/transformer_compiled
    python examples/train_compiled.py --logdir log/compiled_graphs --mode reduce-overhead

Origins names the lines of this file for each compiled kernel, with the fused nodes and the generated code.
"""

from __future__ import annotations

import argparse

import torch
import torch._inductor.config
from common import device
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile, schedule

import torch_tb_profiler

WAIT = 4
"""Steps before the profiler warms up: the first compiles, the next ones capture graphs."""


class GatedBlock(nn.Module):
    """A normalized layer whose output a gate weighs, added to its input."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        value, gate = self.up(self.norm(x)).chunk(2, dim=-1)
        return x + self.down(value * torch.sigmoid(gate))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logdir", default="log/transformer_compiled")
    parser.add_argument("--mode", default="default", help="mode of torch.compile, such as reduce-overhead")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=3, help="steps to record")
    options = parser.parse_args()

    # Created before the model is compiled, so that it hears of the compile.
    on_trace_ready = torch_tb_profiler.handler(options.logdir, worker="worker0", summary=False)
    torch._inductor.config.cpp.enable_kernel_profile = True
    torch.manual_seed(0)
    place = device()
    activities = [ProfilerActivity.CPU]
    if place.type == "cuda":
        activities.append(ProfilerActivity.CUDA)
    model = nn.Sequential(GatedBlock(options.width), GatedBlock(options.width)).to(place)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    compiled = torch.compile(model, mode=options.mode)
    with profile(
        activities=activities,
        schedule=schedule(wait=WAIT, warmup=1, active=options.steps, repeat=1),
        on_trace_ready=on_trace_ready,
        record_shapes=True,
    ) as prof:
        for _ in range(WAIT + 1 + options.steps):
            loss = compiled(torch.randn(options.batch, options.width, device=place)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            prof.step()
    print(f"trace written to {options.logdir}")


if __name__ == "__main__":
    main()
