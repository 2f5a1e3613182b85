"""A job of many ranks on a Dask cluster of this machine: time and memory by ranks and workers.

    python -m benchmarks.cluster --ranks 32 128 --workers 1 2 --megabytes 8

Every rank is a file of its own, grown from `samples/ddp`. One *worker* is one process. It prints the seconds until
all ranks are read and kept, the processor time of the busiest worker (which is what they take where every worker
has a core of its own), until the view of the whole job is built from them, and the largest memory of the server,
the scheduler and any worker.
"""

from __future__ import annotations

import argparse
import json
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil

from benchmarks.distributed import SAMPLE, write_job
from benchmarks.grow import read_recording


@contextmanager
def cluster(folder: Path, workers: int) -> Iterator[tuple[str, psutil.Process, list[psutil.Process]]]:
    """Start a cluster; yield (address, scheduler, workers)."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    common = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--no-dashboard"]
    started: list[Any] = [subprocess.Popen([*command, "--port", str(port)], **common)]
    command = [sys.executable, "-m", "distributed.cli.dask_worker", f"tcp://127.0.0.1:{port}", "--no-dashboard"]
    command += ["--nthreads", "1", "--no-nanny", "--memory-limit", "0", "--local-directory", str(folder)]
    started += [subprocess.Popen(command, **common) for _ in range(workers)]
    try:
        scheduler, *others = (psutil.Process(process.pid) for process in started)
        yield f"127.0.0.1:{port}", scheduler, others
    finally:
        for process in started:
            process.kill()
            process.wait()


class Peak:
    """The largest memory of processes while the context is open, MB."""

    def __init__(self, **processes: list[psutil.Process]) -> None:
        self._processes = processes
        self.megabytes = dict.fromkeys(processes, 0.0)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.05):
            for name, processes in self._processes.items():
                now = max(process.memory_info().rss for process in processes) / 1e6
                self.megabytes[name] = max(self.megabytes[name], now)


def measure(log: Path, workers: int) -> dict[str, float]:
    """Run one job on a fresh cluster with an empty cache, in a process of its own."""
    from torch_tb_profiler.base.settings import Settings
    from torch_tb_profiler.session import Root, Session

    with tempfile.TemporaryDirectory() as folder, cluster(Path(folder), workers) as (address, scheduler, others):
        _wait_for_workers(address, workers)
        settings = replace(
            Settings.from_environment(),
            executor=f"dask://{address}",
            cache_dir=str(Path(folder) / "cache"),
            small_file_bytes=0,
        )
        peak = Peak(server=[psutil.Process()], scheduler=[scheduler], worker=others)
        with Session([Root(str(log))], settings) as session, peak:
            session.scan()
            run = session.catalog.run(None)
            began = time.perf_counter()
            for key in [session.load(worker.spans[0]) for worker in run.workers]:
                session.wait(key)
            read = time.perf_counter() - began
            busiest = max(sum(worker.cpu_times()[:2]) for worker in others)
            failed = [w.name for w in run.workers if session.state(w.spans[0]).state != "ready"]
            if failed:
                raise SystemExit(f"not read: {failed}")
            began = time.perf_counter()
            answer = session.view("distributed", wait=True)
            assert answer.payload is not None, answer.state
            built = time.perf_counter() - began
        return {"read": read, "busiest": busiest, "view": built, "KB": len(answer.payload) / 1e3, **peak.megabytes}


def _wait_for_workers(address: str, count: int) -> None:
    from distributed import Client

    with Client(f"tcp://{address}", set_as_default=False) as client:
        client.wait_for_workers(count, timeout=60)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=[32, 128])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--megabytes", type=float, default=8)
    parser.add_argument("--job", type=Path, help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.job:
        print(json.dumps(measure(wanted.job, wanted.workers[0])))
        return
    columns = ("read", "busiest", "view", "KB", "server", "scheduler", "worker")
    heads = (
        "all ranks read, s",
        "processor of the busiest worker, s",
        "view of the job, s",
        "view, KB",
        "server, MB",
        "scheduler, MB",
        "worker, MB",
    )
    print("| ranks | workers | " + " | ".join(heads) + " |\n" + "|---" * (len(heads) + 2) + "|")
    recording = read_recording(SAMPLE)
    for ranks in wanted.ranks:
        with tempfile.TemporaryDirectory() as folder:
            write_job(recording, Path(folder) / "log" / "run", ranks, wanted.megabytes)
            for workers in wanted.workers:
                command = [sys.executable, "-m", "benchmarks.cluster", "--job", f"{folder}/log", "--workers"]
                done = subprocess.run([*command, str(workers)], stdout=subprocess.PIPE, text=True, check=True)
                figures = json.loads(done.stdout.splitlines()[-1])
                cells = " | ".join(f"{figures[name]:.1f}" for name in columns)
                print(f"| {ranks} | {workers} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
