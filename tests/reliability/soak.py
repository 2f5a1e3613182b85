"""Many clients ask everything of one server while runs appear, change, break and vanish."""

from __future__ import annotations

import gzip
import http.client
import json
import random
import shutil
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from urllib.parse import urlencode

import psutil

from tests.support.logs import trace
from tests.support.servers.fragile import ROUTE, Server
from torch_tb_profiler.http.openapi import build_document
from torch_tb_profiler.http.routes import ROUTES
from torch_tb_profiler.views import all_views

THINKING = 0.2
"""Seconds at most between an answer and the next question of a client."""

NAMED = {
    "usage",
    "not_found",
    "undecided",
    "trace",
    "too_large",
    "storage",
    "worker_died",
}
"""The states that a fault may have; anything else is a defect."""


@dataclass
class Record:
    """What came of it: answers by status and route, what was not one of the named states, bytes over time."""

    statuses: Counter[int] = field(default_factory=Counter)
    routes: Counter[str] = field(default_factory=Counter)
    defects: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    files: list[int] = field(default_factory=list)
    threads: list[int] = field(default_factory=list)


def list_surface() -> list[tuple[str, str]]:
    """Return (method, route) of the whole surface."""
    plain = [(route.method, route.path[1:]) for route in ROUTES if "{" not in route.path]
    return plain + [("GET", f"view/{view.slug}") for view in all_views()]


def soak(made: Server, log: Path, requests: int, clients: int) -> Record:
    """Send that many requests; returns when all are answered."""
    record, lock, stop = Record(), threading.Lock(), threading.Event()
    left = iter(range(requests))

    def client(seed: int) -> None:
        chance = random.Random(seed)
        connection = http.client.HTTPConnection("127.0.0.1", made.port, timeout=120)
        while True:
            with lock:
                if next(left, None) is None:
                    break
            method, route = chance.choice(list_surface())
            stop.wait(chance.random() * THINKING)
            began = time.monotonic()
            try:
                status, body = _ask(connection, method, route, _query(chance, route))
            except (OSError, http.client.HTTPException) as error:
                status, body = 0, repr(error).encode()
                connection.close()
            with lock:
                record.seconds.append(time.monotonic() - began)
                record.statuses[status] += 1
                record.routes[route] += 1
                if status not in (200, 202, 304) and _code(body) not in NAMED:
                    record.defects.append(f"{method} {route}: {status} {body[:300]!r}")
        connection.close()

    changing = threading.Thread(target=_change, args=(log, stop))
    watching = threading.Thread(target=_watch, args=(made, record, stop))
    threads = [threading.Thread(target=client, args=(seed,)) for seed in range(clients)]
    for thread in (changing, watching, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    stop.set()
    changing.join()
    watching.join()
    return record


def _ask(
    connection: http.client.HTTPConnection, method: str, route: str, query: dict[str, str]
) -> tuple[int, bytes]:
    headers = {"Accept-Encoding": "gzip"}
    connection.request(method, f"{ROUTE}/{route}?{urlencode(query)}", headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    return answer.status, gzip.decompress(body) if answer.headers.get("Content-Encoding") == "gzip" else body


def _query(chance: random.Random, route: str) -> dict[str, str]:
    if route == "runs":
        return {}
    query = {"run": f"run{chance.randrange(8)}"}
    if route != "workers" and chance.random() < 0.7:
        query["worker"] = f"w{chance.randrange(3)}"
    if chance.random() < 0.1:
        query["run"] = chance.choice(["", "../run0", "<b>", "none", "\u202e"])
    for name, required in parameters().get(route, {}).items():
        if required or chance.random() < 0.15:
            query[name] = chance.choice(VALUES.get(name, ("1", "0", "12", "aten::op1", "host")))
    return query


VALUES = {
    "operator": ("aten::op1", "aten::op2"),
    "kernel": ("gemm0", "gemm1"),
    "name": ("aten::op1", "gemm0", "", "\0"),
    "begin": ("0", "5000"),
    "end": ("1000000", "99999999999"),
    "time": ("host", "device"),
    "unit": ("ns",),
    "text": ("op", "gemm", "("),
    "search": ("op", "gemm", "("),
    "group_by": ("name", "shape", "nonsense"),
}
"""Of parameters of the views: some that are there, some that are not."""


@cache
def parameters() -> dict[str, dict[str, bool]]:
    """Return view -> its own parameters and whether they are required."""
    return {
        path[1:]: {row["name"]: row.get("required", False) for row in item["get"]["parameters"][3:]}
        for path, item in build_document()["paths"].items()
        if path.startswith("/view/")
    }


def _code(body: bytes) -> str | None:
    try:
        code: str = json.loads(body)["error"]["code"]
    except (ValueError, KeyError, TypeError):
        return None
    return code


def _change(log: Path, stop: threading.Event) -> None:
    """Make a run appear, be replaced, grow, break or vanish, several times a second."""
    chance = random.Random(1)
    contents = [trace(seed, 200 * (seed + 1)) for seed in range(6)]
    while not stop.is_set():
        run, worker = log / f"run{chance.randrange(8)}", f"w{chance.randrange(3)}.1.pt.trace.json"
        content = chance.choice(contents)
        what = chance.randrange(10)
        if what == 0:
            shutil.rmtree(run, ignore_errors=True)
        else:
            run.mkdir(exist_ok=True)
            if what == 1:
                _put(run / worker, content[: chance.randrange(len(content))])
            elif what == 2:
                _put(run / worker, chance.randbytes(1000))
            elif what == 3:
                _put(run / f"{worker}.gz", gzip.compress(content, 1))
            else:
                _put(run / worker, content)
        stop.wait(0.3)


def _put(path: Path, content: bytes) -> None:
    """Replace a file at once: a download that runs goes on with the file it began with."""
    new = path.with_name(".new")
    new.write_bytes(content)
    new.replace(path)


def _watch(made: Server, record: Record, stop: threading.Event) -> None:
    process = psutil.Process(made.process.pid)
    while not stop.wait(0.5):
        record.memory.append(process.memory_info().rss)
        record.files.append(process.num_fds())
        record.threads.append(process.num_threads())
