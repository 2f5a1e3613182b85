"""A real Dask scheduler with worker processes on loopback, for tests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.servers.storage import free_port, wait_for
from tests.support.waiting import PATIENCE


@dataclass
class Cluster:
    """`workers` may be killed; what is left ends with the context."""

    port: int
    folder: Path
    environ: dict[str, str] = field(default_factory=dict)
    scheduler: subprocess.Popen[bytes] | None = None
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def spec(self) -> str:
        """The executor that names this cluster."""
        return f"dask://127.0.0.1:{self.port}"

    def start_scheduler(self) -> None:
        options = ["--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard", "--no-show"]
        self.scheduler = self._start("dask_scheduler", options)
        wait_for(self.port, self.scheduler)

    def add_worker(self) -> None:
        options = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--memory-limit", "2GiB"]
        options += ["--local-directory", str(self.folder), "--death-timeout", str(PATIENCE)]
        self.workers.append(self._start("dask_worker", [f"tcp://127.0.0.1:{self.port}", *options]))

    def _start(self, module: str, options: list[str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.{module}", *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "DASK_DISTRIBUTED__ADMIN__LOG_LENGTH": "0", **self.environ},
        )

    def stop(self) -> None:
        processes = [process for process in (*self.workers, self.scheduler) if process is not None]
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()


@contextmanager
def cluster(folder: Path, workers: int, **environ: str) -> Iterator[Cluster]:
    """Yield a scheduler and its workers, all gone afterwards."""
    made = Cluster(free_port(), folder, environ)
    try:
        made.start_scheduler()
        for _ in range(workers):
            made.add_worker()
        yield made
    finally:
        made.stop()
