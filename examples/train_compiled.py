"""Trains a small network that torch.compile compiles, and records where its kernels come from.

    OMP_NUM_THREADS=1 python examples/train_compiled.py --logdir log/transformer_compiled

Origins names the lines of this file for each compiled kernel, with the fused nodes and the generated code.
"""

from __future__ import annotations

import argparse

import torch
import torch._inductor.config
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile, schedule

import torch_tb_profiler


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
    parser.add_argument("--steps", type=int, default=3, help="steps to record")
    options = parser.parse_args()

    # Created before the model is compiled, so that it hears of the compile.
    on_trace_ready = torch_tb_profiler.handler(options.logdir, worker="worker0", summary=False)
    torch._inductor.config.cpp.enable_kernel_profile = True
    torch.manual_seed(0)
    width = 256
    model = nn.Sequential(GatedBlock(width), GatedBlock(width))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    compiled = torch.compile(model)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=options.steps, repeat=1),
        on_trace_ready=on_trace_ready,
        record_shapes=True,
    ) as prof:
        for _ in range(options.steps + 2):
            loss = compiled(torch.randn(64, width)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            prof.step()
    print(f"trace written to {options.logdir}")


if __name__ == "__main__":
    main()
