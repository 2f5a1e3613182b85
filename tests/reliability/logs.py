"""Log folders for the tests of faults: traces of which every view has something to show, no two alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.traces import document
from torch_tb_profiler.session import Root, Session
from torch_tb_profiler.settings import Settings

VIEWS = ("overview", "operators", "kernels", "trace")


def trace(seed: int, count: int = 1000) -> bytes:
    """A trace of `count` operators with a launch and a kernel each; `seed` sets their durations."""
    events: list[dict[str, Any]] = []
    for i in range(count):
        ts, base = i * 100.0, {"ph": "X", "pid": 1, "tid": 1}
        args = {"correlation": i + 1, "device": 0, "stream": 7}
        events.append({**base, "cat": "cpu_op", "name": f"aten::op{i % 7}", "ts": ts, "dur": 50 + seed})
        launch = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": ts + 10, "dur": 5, "args": args}
        events.append({**base, **launch})
        kernel = {"cat": "kernel", "name": f"gemm{i % 3}", "pid": 0, "tid": 7, "dur": 20 + seed, "args": args}
        events.append({**base, **kernel, "ts": ts + 20})
    return document(events)


def write_log(folder: Path, runs: int = 1, workers: int = 2, count: int = 1000) -> Path:
    """`runs` folders of `workers` files."""
    for run in range(runs):
        (folder / f"run{run}").mkdir(parents=True, exist_ok=True)
        for worker in range(workers):
            content = trace(run * workers + worker, count)
            (folder / f"run{run}" / f"w{worker}.1.pt.trace.json").write_bytes(content)
    return folder


def payload(session: Session, slug: str, run: str | None = None, worker: str | None = None) -> Any:
    """A view's payload, waited for."""
    answer = session.view(slug, run, worker, wait=True, timeout=60)
    assert answer.payload is not None, answer.state
    return json.loads(answer.payload)


def expected(log: Path, settings: Settings) -> dict[tuple[str, str, str], Any]:
    """(run, worker, view) -> payload, of everything in a log, by a session that nothing disturbs."""
    with Session([Root(str(log))], settings) as session:
        session.scan()
        return {
            (run.name, worker.name, slug): payload(session, slug, run.name, worker.name)
            for run in session.catalog.runs
            for worker in run.workers
            for slug in VIEWS
        }
