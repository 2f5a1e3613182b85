"""Hangs on purpose: one rank of four never joins a collective; every rank dumps its flight recorder and stacks.

    python examples/hang.py --logdir log/hang                  # rank 2 waits for a batch that never comes
    python examples/hang.py --logdir log/hang --fault skip     # rank 2 leaves out an all_reduce
    torch-tb-profiler view hangs log/hang --format table

Runs on the CPU, with Gloo, and ends by itself. Like NCCL's watchdog on GPUs, a thread of each rank dumps once the
rank stands still; when all have, it dumps again some seconds later, to show that nothing moved, and ends the rank.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import pickle
import queue
import sys
import tempfile
import threading
import time
from datetime import timedelta
from pathlib import Path

os.environ.setdefault("TORCH_FR_BUFFER_SIZE", "2000")  # switches the recorder on; read when torch starts

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch._C._distributed_c10d import _dump_fr_trace

FAULTY_STEP = 3
LIMIT = timedelta(minutes=5)
"""How long a rank waits for the others' dumps."""


class Watchdog(threading.Thread):
    """Dumps a rank that stands still, twice, and ends its process."""

    def __init__(self, folder: Path, meeting: str, rank: int, world: int, patience: float) -> None:
        super().__init__(daemon=True)
        self.folder, self.rank, self.world, self.patience = folder, rank, world, patience
        self.store = dist.FileStore(meeting, world)
        self.store.set_timeout(LIMIT)
        self.steps = threading.Semaphore(0)

    def report_step(self) -> None:
        self.steps.release()

    def run(self) -> None:
        for _ in range(FAULTY_STEP):
            self.steps.acquire()  # without a limit: how long a step takes is up to the machine
        while self.steps.acquire(timeout=self.patience) or not stands_still():
            pass  # it works, however slowly
        self.write("first_trace_rank_")
        self.meet("stalled")
        threading.Event().wait(self.patience)  # the time between the two dumps
        self.write("comm_lib_trace_rank_")
        with (self.folder / f"stack_rank_{self.rank}.txt").open("w") as file:
            faulthandler.dump_traceback(file, all_threads=True)
        self.meet("dumped")
        os._exit(1)

    def write(self, series: str) -> None:
        """Write the recorder, and the time, which it doesn't hold and which a copy of the file may lose.

        The file has a temporary name first: nobody must read half a dump.
        """
        path = self.folder / f"{series}{self.rank}"
        part = path.with_name(f".{path.name}")
        dump = {**pickle.loads(_dump_fr_trace()), "dumped_at_ns": time.time_ns()}
        part.write_bytes(pickle.dumps(dump, protocol=2))
        part.replace(path)

    def meet(self, event: str) -> None:
        """Wait until every rank is here."""
        self.store.set(f"{event} {self.rank}", "yes")
        self.store.wait([f"{event} {rank}" for rank in range(self.world)])


def load_batch(batches: queue.Queue[torch.Tensor]) -> torch.Tensor:
    return batches.get()


def average_gradients(model: nn.Module) -> None:
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)


def train(rank: int, world: int, folder: str, meeting: str, fault: str, culprit: int, patience: float) -> None:
    """Do the work of one process."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=world)
    watchdog = Watchdog(Path(folder), f"{meeting}.watchdog", rank, world, patience)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches: queue.Queue[torch.Tensor] = queue.Queue()
    watchdog.start()
    for step in range(FAULTY_STEP + 1):
        faulty = rank == culprit and step == FAULTY_STEP
        if not (faulty and fault == "data"):
            batches.put(torch.randn(8, 64))
        loss = model(load_batch(batches)).sum()
        optimizer.zero_grad()
        loss.backward()
        if not (faulty and fault == "skip"):
            average_gradients(model)
        dist.barrier()
        optimizer.step()
        watchdog.report_step()
    threading.Event().wait()  # until the watchdog ends the process


def stands_still() -> bool:
    """Return whether the main thread waits for a batch or in a collective that has not ended."""
    if not all(call["retired"] for call in pickle.loads(_dump_fr_trace())["entries"]):
        return True
    frame = sys._current_frames()[threading.main_thread().ident]
    while frame and frame.f_code is not load_batch.__code__:
        frame = frame.f_back
    return frame is not None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logdir", default="log/hang")
    parser.add_argument("--world", type=int, default=4, help="processes")
    parser.add_argument("--fault", choices=("data", "skip"), default="data")
    parser.add_argument("--culprit", type=int, default=2, help="the rank at fault")
    parser.add_argument("--patience", type=float, default=5.0, help="seconds from dump to dump")
    options = parser.parse_args()
    Path(options.logdir).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        meeting = os.path.join(folder, "meet")
        arguments = (options.logdir, meeting, options.fault, options.culprit, options.patience)
        context = mp.get_context("spawn")
        processes = [
            context.Process(target=train, args=(rank, options.world, *arguments)) for rank in range(options.world)
        ]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
    print(f"dumps written to {options.logdir}")


if __name__ == "__main__":
    main()
