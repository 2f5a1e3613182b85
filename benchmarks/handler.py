"""What recording a compile costs: PyTorch's own work for torch.compile, with and without our handler.

    OMP_NUM_THREADS=1 python -m benchmarks.handler --rounds 12

The network of examples/train_compiled.py is compiled again and again in one process, forward and backward, without
the cache of graphs. The C++ compilers, which take several times as long as PyTorch, run only for the first: later
compiles find what they built. So a figure is a share of PyTorch's own work; of the whole compile it is a fraction.
CPU time of the thread varies by 10% from one compile to the next, so that its median needs many rounds. The number
of calls of functions, by cProfile, is the same each time and says how much more there is to do. A round takes each
way once:

    plain    without the handler
    level    without the handler, with PyTorch's provenance level 1, which names the lines of a kernel
    handler  with `torch_tb_profiler.handler`, which turns the level on and keeps the compile record
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import logging
import pstats
import statistics
import time

import torch
import torch._dynamo
import torch._functorch.config
import torch._inductor.config
from torch._inductor import compile_fx  # noqa: F401  (imported by the first compile otherwise)

from examples.train_compiled import GatedBlock
from torch_tb_profiler.training.compile_record import CompileRecorder, start_recording

WAYS = ("plain", "level", "handler")


def compile_once(way: str, recorder: CompileRecorder, profiler: cProfile.Profile | None = None) -> float:
    """Compile the network, forward and backward; return CPU seconds of this thread."""
    logger = logging.getLogger("torch.__trace")
    logger.removeHandler(recorder)
    if way == "handler":
        logger.addHandler(recorder)
    torch._inductor.config.trace.provenance_tracking_level = int(way != "plain")
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = torch.compile(torch.nn.Sequential(GatedBlock(256), GatedBlock(256)))
    x = torch.randn(64, 256)
    gc.collect()
    if profiler is not None:
        profiler.enable()
    begin = time.thread_time()
    model(x).square().mean().backward()
    seconds = time.thread_time() - begin
    if profiler is not None:
        profiler.disable()
    return seconds


def count_calls(way: str, recorder: CompileRecorder) -> int:
    """Return how many functions a compile calls."""
    profiler = cProfile.Profile()
    compile_once(way, recorder, profiler)
    return int(pstats.Stats(profiler).total_calls)  # type: ignore[attr-defined]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=12)
    options = parser.parse_args()
    torch._inductor.config.fx_graph_cache = False
    torch._functorch.config.enable_autograd_cache = False
    torch._inductor.config.compile_threads = 1
    recorder = start_recording()
    for way in WAYS:
        compile_once(way, recorder)
    calls = {way: count_calls(way, recorder) for way in WAYS}
    rounds: list[dict[str, float]] = []
    for number in range(options.rounds):
        order = WAYS[number % len(WAYS) :] + WAYS[: number % len(WAYS)]
        rounds.append({way: compile_once(way, recorder) for way in order})
    print("way      functions called   more   CPU, median   more than plain in a round, median (middle half)")
    for way in WAYS:
        more = sorted(each[way] / each["plain"] - 1 for each in rounds)
        quarter = len(more) // 4
        print(
            f"{way:8} {calls[way]:16,} {calls[way] / calls['plain'] - 1:+6.1%} "
            f"{statistics.median(each[way] for each in rounds):11.2f} s   {statistics.median(more):+6.1%} "
            f"({more[quarter]:+.1%} to {more[-1 - quarter]:+.1%})"
        )


if __name__ == "__main__":
    main()
