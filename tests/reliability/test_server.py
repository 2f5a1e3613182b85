"""A real TensorBoard under fire: killed workers, a killed server, cut connections, many requests at once."""

from __future__ import annotations

import itertools
import json
import os
import signal
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import psutil
import pytest

from tests.support.logs import VIEWS, expected_payloads, write_log
from tests.support.servers.fragile import FULL_DISK, ROUTE, Server, server
from tests.support.waiting import PATIENCE, until
from torch_tb_profiler.base.settings import Settings

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name == "nt", reason="signals")]

COUNT = 30_000
"""Operators in a file that takes a worker long enough to be killed in the middle, without the native reader."""


@pytest.fixture
def large(tmp_path: Path) -> Iterator[Server]:
    """Yield a server whose one file is read by a worker process."""
    log = write_log(tmp_path / "log", workers=1, count=COUNT)
    with server(
        log,
        TORCH_PROFILER_CACHE_DIR=str(tmp_path / "cache"),
        TORCH_PROFILER_SMALL_FILE_BYTES="0",
        TORCH_PROFILER_NATIVE="0",
    ) as made:
        yield made


def right_answers(log: Path, cache: Path) -> dict[str, Any]:
    settings = replace(Settings.from_environment(), executor="serial", cache_dir=str(cache))
    return {slug: payload for (_, _, slug), payload in expected_payloads(log, settings).items()}


def stopped_while_reading(made: Server, log: Path) -> list[psutil.Process]:
    """Return the worker process, halted in the middle of the file.

    On a busy machine it may be through before anybody asks: the file has changed then, and is read again.
    """
    [file] = (each for each in log.rglob("*") if each.is_file())

    is_touched = False

    def halted() -> bool:
        nonlocal is_touched
        workers = made.workers()
        for worker in workers:
            worker.suspend()
        state = made.get("state")[1]["state"]
        if state["state"] == "loading" and state["progress"]["events"]:
            return True
        for worker in workers:
            worker.resume()
        if state["state"] == "ready" and not is_touched:
            os.utime(file)
        made.get("view/overview")
        is_touched = state["state"] == "ready"
        return False

    assert until(halted)
    return made.workers()


def test_workers_killed_while_they_read(large: Server, tmp_path: Path) -> None:
    """The file is failed with its reason and can be retried, again and again; nothing piles up."""
    right = right_answers(tmp_path / "log", tmp_path / "own")
    held: list[tuple[int, int]] = []

    def no_more(now: tuple[int, int]) -> bool:
        return not held or (now[0] <= held[0][0] + 2 and now[1] <= held[0][1] + 2)

    for _ in range(3):
        assert large.get("view/overview")[0] in (202, 422)
        large.get("retry", method="POST")
        for worker in stopped_while_reading(large, tmp_path / "log"):
            worker.kill()
        assert until(lambda: large.get("state")[1]["state"]["state"] == "failed")
        status, body = large.get("view/overview")
        assert (status, body["error"]["code"]) == (422, "worker_died")
        assert body["error"]["hint"]
        assert until(lambda: not large.zombies())
        # Waited for: the pool of a killed worker closes its pipes after its job has failed.
        held.append(until(large.count_open, no_more))
    large.get("retry", method="POST")
    assert {slug: large.payload(slug) for slug in VIEWS} == right
    assert len(large.workers()) == 1


def test_workers_of_a_killed_server_end_and_it_starts_again(large: Server, tmp_path: Path) -> None:
    """No worker outlives a server that could not clean up; the next server on the port has the right numbers."""
    large.get("view/overview")
    workers = stopped_while_reading(large, tmp_path / "log")
    assert workers
    large.stop(signal.SIGKILL)
    for worker in workers:
        worker.resume()
    _, alive = psutil.wait_procs(workers, timeout=PATIENCE)
    assert not alive
    large.start()
    assert {slug: large.payload(slug) for slug in VIEWS} == right_answers(tmp_path / "log", tmp_path / "own")
    assert not [entry for entry in (tmp_path / "cache").iterdir() if entry.suffix == ".part"]


def test_two_hundred_requests_at_once(tmp_path: Path) -> None:
    """All routes, cold: every answer is right or says that it is loading; nothing is left open afterwards."""
    log = write_log(tmp_path / "log", runs=2, workers=2)
    settings = replace(Settings.from_environment(), executor="serial", cache_dir=str(tmp_path / "own"))
    right = expected_payloads(log, settings)
    names = [f"view/{slug}" for slug in VIEWS] + ["runs", "workers", "spans", "state", "health", "views"]
    completed = [(name, f"run{run}", f"w{worker}") for name in names for run in (0, 1) for worker in (0, 1)]
    with server(log, TORCH_PROFILER_CACHE_DIR=str(tmp_path / "cache")) as made:
        before = made.count_open()
        start = threading.Barrier(200)

        def ask(item: tuple[str, str, str]) -> tuple[int, bool]:
            name, run, worker = item
            takes = {"runs": {}, "workers": {"run": run}, "spans": {"run": run, "worker": worker}}
            start.wait(PATIENCE)
            status, body = made.get(name, **takes.get(name, {"run": run, "worker": worker}))
            slug = name.partition("/")[2]
            return status, status != 200 or not slug or body["payload"] == right[run, worker, slug]

        with ThreadPoolExecutor(200) as threads:
            answers = list(threads.map(ask, itertools.islice(itertools.cycle(completed), 200)))
        assert all(fits for _, fits in answers)
        assert set(Counter(status for status, _ in answers)) <= {200, 202}
        for (run, worker, slug), payload in right.items():
            assert made.payload(slug, run=run, worker=worker) == payload
        files, threads_before = before
        assert until(lambda: made.count_open()[0] <= files + 8), (before, made.count_open())
        assert until(lambda: made.count_open()[1] <= threads_before + 8), (before, made.count_open())


def test_aborted_downloads_free_their_files(tmp_path: Path) -> None:
    """Clients that leave early leave nothing open."""
    log = write_log(tmp_path / "log", workers=1, count=8000)
    with server(log, TORCH_PROFILER_CACHE_DIR=str(tmp_path / "cache")) as made:
        made.get("runs")
        before = made.count_open()[0]
        for path in ("download", "slice") * 10:
            with socket.create_connection(("127.0.0.1", made.port)) as client:
                client.sendall(f"GET {ROUTE}/{path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
                assert client.recv(1000).startswith(b"HTTP/1.")
        assert until(lambda: made.count_open()[0] <= before + 3), (before, made.count_open())
        assert made.payload("overview")["steps"]


def test_a_full_disk_under_a_server(tmp_path: Path) -> None:
    """Nothing can be written by the server or its workers; every view of every worker is right nevertheless."""
    log = write_log(tmp_path / "log", workers=2)
    settings = replace(Settings.from_environment(), executor="serial", cache_dir=str(tmp_path / "own"))
    right = expected_payloads(log, settings)

    environ = {"TORCH_PROFILER_CACHE_DIR": str(tmp_path / "cache"), "TORCH_PROFILER_SMALL_FILE_BYTES": "0"}
    with server(log, FULL_DISK, **environ) as made:
        for _ in range(2):
            for (run, worker, slug), payload in right.items():
                assert made.payload(slug, run=run, worker=worker) == payload


def raw(made: Server, path: str) -> bytes:
    """Return the answer as it comes over the line, head and body; the path goes out as it is."""
    with socket.create_connection(("127.0.0.1", made.port)) as client:
        client.sendall(f"GET {ROUTE}/{path} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
        return b"".join(iter(lambda: client.recv(65536), b""))


def test_hostile_requests(tmp_path: Path) -> None:
    """Paths that climb, names with line breaks and markup, headers that smuggle: an error body, nothing else."""
    log = write_log(tmp_path / "log", workers=1)
    secret = tmp_path / "secret.pt.trace.json"
    secret.write_bytes(b"top secret")
    hostile = ["../secret", "..%2fsecret.pt.trace.json", "/etc/passwd", "....//", "\0", "\r\nX-Bad: 1", "<script>"]
    hostile += [
        "%0d%0aX-Bad:%201",
        "a" * 9000,
        "\ud7ff\uffff",
        "run0/../../secret",
        "C:\\windows",
        "file:///etc/passwd",
    ]
    with server(log, TORCH_PROFILER_CACHE_DIR=str(tmp_path / "cache")) as made:
        for name, route in itertools.product(hostile, ("view/overview", "download", "slice", "workers", "state")):
            status, body = made.get(route, run=name)
            assert status in (400, 404), (route, name, body)
            assert set(body) == {"error"}
            assert made.get(route, worker=name)[0] in (400, 404)
        for path in (
            "../../../../etc/passwd",
            "assets/../../settings.py",
            "assets/%2e%2e/%2e%2e/settings.py",
            "//etc",
        ):
            answer = raw(made, path)
            assert b" 200 " not in answer.split(b"\r\n")[0], path
            assert b"root:" not in answer and b"TORCH_PROFILER" not in answer
        assert made.payload("overview")["steps"]


def test_hostile_file_names(tmp_path: Path) -> None:
    """Line breaks, quotes and markup in the names of folders and files reach no header and break no answer."""
    names = ["a\r\nX-Bad: 1", '"; filename="x', "<img src=x onerror=alert(1)>", "\u202etxt.exe", "%0d%0aX-Bad: 1"]
    content = next(write_log(tmp_path / "plain", workers=1).rglob("*.json")).read_bytes()
    log = tmp_path / "log"
    for name in names:
        (log / name).mkdir(parents=True)
        (log / name / f"{name}.1.pt.trace.json").write_bytes(content)
    with server(log, TORCH_PROFILER_CACHE_DIR=str(tmp_path / "cache")) as made:
        listed = {run["name"] for run in made.get("runs")[1]["runs"]}
        assert listed == set(names)
        for name in names:
            assert made.payload("overview", run=name)["steps"]
            with socket.create_connection(("127.0.0.1", made.port)) as client:
                query = urlencode({"run": name})
                client.sendall(f"GET {ROUTE}/download?{query} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
                with client.makefile("rb") as stream:
                    head, _, body = stream.read().partition(b"\r\n\r\n")
            assert b" 200 " in head.split(b"\r\n")[0]
            assert b"\nx-bad" not in head.lower()
            assert json.loads(body)["traceEvents"]
