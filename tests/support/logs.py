"""Log folders for the tests of faults: traces of which every view has something to show, no two alike."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.support.traces import document
from tests.support.waiting import PATIENCE
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.session import Root, Session

VIEWS = ("overview", "operators", "kernels", "trace")


def trace(seed: int, count: int = 1000) -> bytes:
    """Return a trace of `count` operators with a launch and a kernel each; `seed` sets their durations.

    Around them steps, modules, memory events and Lightning's hooks; every tenth kernel is a collective.
    """
    events = _frames(seed, count * 100.0)
    for i in range(count):
        ts, base = i * 100.0, {"ph": "X", "pid": 1, "tid": 1}
        args = {"correlation": i + 1, "device": 0, "stream": 7}
        events.append({**base, "cat": "cpu_op", "name": f"aten::op{i % 7}", "ts": ts, "dur": 50 + seed})
        launch = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": ts + 10, "dur": 5, "args": args}
        events.append({**base, **launch})
        kernel = {"cat": "kernel", "name": f"gemm{i % 3}", "pid": 0, "tid": 7, "dur": 20 + seed, "args": args}
        if i % 10 == 0:
            about = {"Collective name": "allreduce", "In msg nelems": 64, "dtype": "Float", "Group size": 2}
            kernel |= {"name": "ncclDevKernel_AllReduce_Sum_f32", "args": {**args, **about}}
        events.append({**base, **kernel, "ts": ts + 20})
        memory = {"Bytes": (-1) ** i * 512, "Total Allocated": 512 * (1 - i % 2), "Device Type": 1, "Device Id": 0}
        memory |= {"Addr": 4096 + i // 2 % 8, "Total Reserved": 2**20}
        instant = {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1}
        events.append({**instant, "ts": ts + 30, "args": memory})
    return document(events, distributedInfo={"backend": "nccl", "rank": seed % 2, "world_size": 2})


def _frames(seed: int, end: float) -> list[dict[str, Any]]:
    """Return what spans many operators: steps, calls of modules, hooks of Lightning."""
    frames: list[dict[str, Any]] = []
    base = {"ph": "X", "pid": 1, "tid": 1}
    for i in range(4):
        at, length = end / 4 * i, end / 4 - 1
        frames.append({**base, "cat": "user_annotation", "name": f"ProfilerStep#{i}", "ts": at, "dur": length})
        hook = "[pl][profile]run_training_batch"
        frames.append({**base, "cat": "user_annotation", "name": hook, "ts": at + 0.5, "dur": length - 1})
        ids = {"Python id": 2 * i + 1, "Python parent id": None, "Python module id": 0}
        module = {"cat": "python_function", "name": f"nn.Module: Net_{seed % 3}", "args": ids}
        frames.append({**base, **module, "ts": at + 1, "dur": length - 2})
        ids = {"Python id": 2 * i + 2, "Python parent id": 2 * i + 1, "Python module id": 1}
        module = {"cat": "python_function", "name": "nn.Module: Linear_0", "args": ids}
        frames.append({**base, **module, "ts": at + 2, "dur": length / 2})
    return frames


def write_log(folder: Path, runs: int = 1, workers: int = 2, count: int = 1000) -> Path:
    """Write `runs` folders of `workers` files."""
    for run in range(runs):
        (folder / f"run{run}").mkdir(parents=True, exist_ok=True)
        for worker in range(workers):
            file = folder / f"run{run}" / f"w{worker}.1.pt.trace.json"
            file.write_bytes(trace(run * workers + worker, count))
            os.utime(file, (1.7e9, 1.7e9))  # else it might still be being written, and is waited for
    return folder


def payload(session: Session, slug: str, run: str | None = None, worker: str | None = None) -> Any:
    """Wait for a view's payload and return it."""
    answer = session.view(slug, run, worker, wait=True, timeout=PATIENCE)
    assert answer.payload is not None, answer.state
    return json.loads(answer.payload)


def expected_payloads(log: Path, settings: Settings) -> dict[tuple[str, str, str], Any]:
    """Return every payload of a log by (run, worker, view), from a session that nothing disturbs."""
    with Session([Root(str(log))], settings) as session:
        session.scan()
        return {
            (run.name, worker.name, slug): payload(session, slug, run.name, worker.name)
            for run in session.catalog.runs
            for worker in run.workers
            for slug in VIEWS
        }


def settings(**changes: Any) -> Settings:
    """Return settings under which even a small file is parsed as a large one, in this process."""
    defaults: dict[str, Any] = {"small_file_bytes": 0, "executor": "serial", "poll_seconds": 0.1}
    return replace(Settings.from_environment(), **{**defaults, **changes})


@contextmanager
def open_log(log: Path, **changes: Any) -> Iterator[Session]:
    """Yield a session over a log folder."""
    with Session([Root(str(log))], settings(**changes)) as session:
        session.scan()
        yield session


def all_payloads(session: Session) -> dict[tuple[str, str, str], Any]:
    """Return the payload of each view of each worker."""
    return {
        (run.name, worker.name, slug): payload(session, slug, run.name, worker.name)
        for run in session.catalog.runs
        for worker in run.workers
        for slug in VIEWS
    }
