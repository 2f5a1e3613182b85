"""A real TensorBoard that tests kill, starve and watch."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import psutil

from tests.support.servers.storage import free_port, wait_for
from tests.support.waiting import PATIENCE, until

ROUTE = "/data/plugin/pytorch_profiler"

FULL_DISK = (
    sys.executable,
    "-c",
    "import os, resource, sys\n"
    "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
    "os.environ['PYTHONDONTWRITEBYTECODE'] = '1'\n"
    "os.execv(sys.argv[1], sys.argv[1:])",
)
"""Runs what follows so that every write beyond the first 4 KiB of a file fails, as on a full disk.

Without bytecode: Python keeps what a short write left of it, and no later process could import that module.
"""


class Server:
    """TensorBoard over a log folder, on a port that it keeps when it is started again."""

    def __init__(self, log: Path, launcher: Sequence[str] = (), **environ: str) -> None:
        self._command = [
            *launcher,
            sys.executable,
            "-m",
            "tensorboard.main",
            "--load_fast",
            "false",
            "--logdir",
            str(log),
        ]
        self._environ = {"TORCH_PROFILER_POLL_SECONDS": "0.2", **environ}
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self.process = subprocess.Popen(
            [*self._command, "--port", str(self.port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **self._environ},
        )
        wait_for(self.port, self.process)
        assert until(lambda: not self.get("runs")[1]["scanning"])

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        self.process.send_signal(how)
        self.process.wait(PATIENCE)

    def get(self, route: str, *, method: str = "GET", **query: str) -> tuple[int, Any]:
        """Return status and body."""
        request = urllib.request.Request(f"{self.url}{ROUTE}/{route}?{urlencode(query)}", method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())

    def payload(self, slug: str, **query: str) -> Any:
        """Wait for a view's payload and return it."""
        answers: list[tuple[int, Any]] = []

        def ready() -> bool:
            answers.append(self.get(f"view/{slug}", **query))
            return answers[-1][0] != 202

        assert until(ready)
        status, body = answers[-1]
        assert status == 200, body
        return body["payload"]

    def workers(self) -> list[psutil.Process]:
        """Return its worker processes."""
        children = psutil.Process(self.process.pid).children(recursive=True)
        return [child for child in children if "spawn_main" in " ".join(_command(child))]

    def count_open(self) -> tuple[int, int]:
        """Return (open files, threads) of the server."""
        process = psutil.Process(self.process.pid)
        return process.num_fds(), process.num_threads()

    def zombies(self) -> list[psutil.Process]:
        children = psutil.Process(self.process.pid).children(recursive=True)
        return [child for child in children if child.status() == psutil.STATUS_ZOMBIE]


def _command(process: psutil.Process) -> list[str]:
    try:
        found: list[str] = process.cmdline()
    except psutil.Error:
        return []  # it has just ended
    return found


@contextmanager
def server(log: Path, launcher: Sequence[str] = (), **environ: str) -> Iterator[Server]:
    """Yield a started server; it and its workers are gone afterwards."""
    made = Server(log, launcher, **environ)
    try:
        made.start()
        yield made
    finally:
        workers = made.workers() if made.process.poll() is None else []
        made.stop()
        gone, alive = psutil.wait_procs(workers, timeout=PATIENCE)
        for process in alive:
            process.kill()
        assert not alive, "worker processes outlived the server"
