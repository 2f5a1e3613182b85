"""Trains with one planted cause of slow steps after the other, and without it: what was foreseen, what happened.

    python examples/plant_causes.py --logdir log

Works on any machine. On a GPU the model is larger, and two causes that only a GPU has are planted, too. Each cause
is recorded twice, as the runs `<cause>` and `<cause>_removed`; the table has what the critical path of the first
says that removing the cause brings, and beside it how much shorter the steps of the second are.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from common import device
from predictions import Planted, predict, show
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler
from torch.utils.data import DataLoader, Dataset

PLACE = device()
ON_GPU = PLACE.type == "cuda"
STEPS, BATCH = 6, 32
TOKENS, WIDTH, LAYERS = (256, 4096, 8) if ON_GPU else (1, 256, 2)
VOCABULARY = 1_000
DELAY_S = 0.02
SMALL_OPERATORS = 2_000
COPIES = "kernel:Memcpy HtoD (Pageable -> Device)" if ON_GPU else "operator:aten::copy_"

CAUSES = [
    Planted("slow_loader", "data_loading", "load a batch in no time"),
    Planted("host_delay", "operator:tokenize", "no Python loop between two operators"),
    Planted("small_operators", "operator:aten::add_", f"one operator instead of {SMALL_OPERATORS:,} small ones"),
    Planted("lock", "wait", "a result that is there when it is needed"),
    Planted("copies", COPIES, "no copies of 64 MB"),
]
if ON_GPU:
    CAUSES += [
        Planted("item", "sync:aten::_local_scalar_dense", "read the loss once a step, not after every layer"),
        Planted("cuda_free", "allocator", "no `empty_cache()` in the step"),
    ]


class Samples(Dataset[Tensor]):
    """Tokens; a batch takes `delay` seconds to read."""

    def __init__(self, delay: float) -> None:
        self.delay = delay

    def __len__(self) -> int:
        return BATCH * (STEPS + 2)

    def __getitem__(self, index: int) -> Tensor:
        if self.delay:
            time.sleep(self.delay / BATCH)
        return torch.full((TOKENS,), index % VOCABULARY)


class Model(nn.Module):
    """Layers between an embedding and a number for each token; `read` is called with what each layer computes."""

    def __init__(self, read: Callable[[Tensor], object]) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, 1)
        self.read = read

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens)
        for layer in self.layers:
            x = torch.relu(layer(x))
            self.read(x)
        return self.head(x)


def tokenize() -> int:
    """Run plain Python for about DELAY_S."""
    until, found = time.perf_counter() + DELAY_S, 0
    while time.perf_counter() < until:
        found += 1
    return found


def host_delay(planted: bool) -> None:
    if planted:
        with torch.profiler.record_function("tokenize"):
            tokenize()


def small_operators(planted: bool) -> None:
    counter = torch.zeros(8, device=PLACE)
    for _ in range(SMALL_OPERATORS if planted else 1):
        counter.add_(1)


def lock(planted: bool) -> None:
    ready = threading.Event()

    def compute() -> None:
        if planted:
            time.sleep(DELAY_S)
        ready.set()

    other = threading.Thread(target=compute)
    other.start()
    ready.wait()
    other.join()


class Copies:
    """Copies between two tensors of 64 MB: on a GPU, from memory of the host that isn't pinned."""

    def __init__(self) -> None:
        self.source, self.target = torch.ones(16_000_000), torch.zeros(16_000_000, device=PLACE)

    def __call__(self, planted: bool) -> None:
        for _ in range(3 if planted else 0):
            self.target.copy_(self.source)


def free_memory(planted: bool) -> None:
    if planted:
        torch.cuda.empty_cache()


def ignore(_: Tensor) -> None:
    """Read nothing of what a layer computes."""


def read_mean(x: Tensor) -> float:
    return x.detach().mean().item()


def record(
    logdir: Path,
    name: str,
    extra: Callable[[], None] = lambda: None,
    loading_s: float = 0,
    read: Callable[[Tensor], object] = ignore,
) -> None:
    """Record steps of a small model, each with something besides."""
    model = Model(read).to(PLACE, torch.bfloat16 if ON_GPU else torch.float32)
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if ON_GPU else [])]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = iter(DataLoader(Samples(loading_s), batch_size=BATCH))
    with profile(
        activities=activities,
        schedule=schedule(wait=0, warmup=2, active=STEPS, repeat=1),
        on_trace_ready=tensorboard_trace_handler(str(logdir / name), worker_name="worker"),
        with_stack=True,
        with_modules=True,
    ) as profiler:
        for _ in range(STEPS + 2):
            output = model(next(batches).to(PLACE))
            extra()
            loss = output.square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            loss.item()
            profiler.step()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logdir", type=Path, default=Path("log"))
    parser.add_argument("--rounds", type=int, default=1, help="each recorded so many times, alternately")
    options = parser.parse_args()
    # Other threads of this machine would make the same step take another time.
    torch.set_num_threads(1)
    actions: dict[str, Callable[[bool], None]] = {
        "host_delay": host_delay,
        "small_operators": small_operators,
        "lock": lock,
        "copies": Copies(),
        **({"cuda_free": free_memory} if ON_GPU else {}),
    }
    for round_ in range(options.rounds):
        for planted in (True, False):
            logdir = options.logdir / str(round_)
            suffix = "" if planted else "_removed"
            record(logdir, f"slow_loader{suffix}", loading_s=DELAY_S * planted)
            if ON_GPU:
                record(logdir, f"item{suffix}", read=read_mean if planted else ignore)
            for name, action in actions.items():
                record(logdir, name + suffix, partial(action, planted))
    show([predict(options.logdir / str(round_), CAUSES) for round_ in range(options.rounds)])


if __name__ == "__main__":
    main()
