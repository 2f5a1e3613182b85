"""Jobs on a real Dask cluster of this machine: a scheduler and worker processes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers.cluster import Cluster, cluster
from tests.support.servers.storage import free_port, s3
from tests.support.traces import document
from tests.support.waiting import PATIENCE, until
from torch_tb_profiler.base.errors import MissingExtraError, WorkerDiedError
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.executors import make_executor
from torch_tb_profiler.session import Root, Session
from torch_tb_profiler.storage import FileId

pytest.importorskip("distributed")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::Warning:distributed")]

RANKS = 16


def rank_trace(rank: int, count: int = 1000) -> bytes:
    """Write operators, launches, kernels and collectives of one rank; no two ranks are the same."""
    events: list[dict[str, Any]] = []
    for i in range(count):
        ts, base = i * 100.0, {"ph": "X", "pid": rank, "ts": i * 100.0}
        events.append({**base, "cat": "cpu_op", "name": f"aten::op{i % 7}", "tid": 1, "dur": 50 + rank})
        args = {"correlation": i + 1, "device": rank % 8, "stream": 7}
        launch = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "tid": 1, "dur": 5, "args": args}
        events.append({**base, **launch, "ts": ts + 10})
        name = "ncclDevKernel_AllReduce" if i % 5 == 0 else "gemm"
        kernel = {"cat": "kernel", "name": name, "tid": 7, "dur": 30 + rank, "args": args}
        events.append({**base, **kernel, "ts": ts + 20, "pid": rank % 8})
    info = {"backend": "nccl", "rank": rank, "world_size": RANKS}
    return document(events, distributedInfo=info)


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("log")
    (folder / "job").mkdir()
    for rank in range(RANKS):
        (folder / "job" / f"rank{rank}.1.pt.trace.json").write_bytes(rank_trace(rank))
    return folder


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[Cluster]:
    with cluster(tmp_path, 2) as running:
        yield running


def settings(**changes: Any) -> Settings:
    return replace(Settings.from_environment(), small_file_bytes=0, **changes)


def load_all(session: Session) -> list[FileId]:
    session.scan()
    run = session.catalog.run(None)
    return [session.load(span) for worker in run.workers for span in worker.spans]


def payloads(session: Session) -> dict[tuple[str, str], bytes]:
    """Return the answer of every worker and every view it has, by (worker, view)."""
    found = {}
    run = session.catalog.run(None)
    for worker in run.workers:
        missing = session.unavailable(session.find(run.name, worker.name, None)) or {}
        for slug in ("overview", "operators", "kernels", "trace"):
            if slug not in missing:
                answer = session.view(slug, run.name, worker.name, wait=True, timeout=PATIENCE)
                assert answer.payload is not None, answer.state
                found[worker.name, slug] = answer.payload
    return found


@pytest.fixture(scope="module")
def expected(ranks: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], bytes]:
    """Return the answers that are built one after the other in this process."""
    serial = settings(executor="serial", cache_dir=str(tmp_path_factory.mktemp("serial")))
    with Session([Root(str(ranks))], serial) as session:
        for key in load_all(session):
            assert session.wait(key, PATIENCE)
        found = payloads(session)
    assert len(found) >= 3 * RANKS
    return found


def test_two_workers_give_the_bytes_of_the_serial_run(
    ranks: Path, expected: dict[tuple[str, str], bytes], workers: Cluster, tmp_path: Path
) -> None:
    shared = settings(executor=workers.spec, cache_dir=str(tmp_path / "shared"))
    with Session([Root(str(ranks))], shared) as session:
        for key in load_all(session):
            assert session.wait(key, PATIENCE)
        assert payloads(session) == expected


def test_a_worker_killed_in_the_middle_changes_nothing_but_time(
    ranks: Path,
    expected: dict[tuple[str, str], bytes],
    workers: Cluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shared = settings(executor=workers.spec, cache_dir=str(tmp_path / "shared"))
    pipes = [tmp_path / "first", tmp_path / "second"]
    for pipe in pipes:
        os.mkfifo(pipe)
    with Session([Root(str(ranks))], shared) as session:
        executor = make_executor(workers.spec)
        monkeypatch.setattr("torch_tb_profiler.executors.make_executor", lambda *_: executor)
        held = [executor.submit(_report_and_wait, str(pipe)) for pipe in pipes]
        assert until(lambda: all(executor.progress(future) is not None for future in held))
        keys = load_all(session)
        progress = executor.progress(held[0])
        assert progress is not None
        victim = next(worker for worker in workers.workers if worker.pid == progress[1])
        victim.kill()
        victim.wait()
        for pipe in reversed(pipes):  # the other worker's first; then it takes the job of the killed one
            pipe.write_text("go")
        for key in keys:
            assert session.wait(key, PATIENCE)
        assert [future.result(PATIENCE) for future in held] == ["go", "go"]
        assert payloads(session) == expected


def test_progress_and_errors_of_a_cluster_come_back(workers: Cluster, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.mkdir()
    (log / "empty.pt.trace.json").write_bytes(b"")
    with Session([Root(str(log))], settings(executor=workers.spec)) as session:
        session.scan()
        error = session.view("overview", wait=True, timeout=PATIENCE).state.error
        assert error is not None
        assert (error.code, error.message) == ("trace", "the file is empty")


def test_a_shared_cache_in_a_bucket(ranks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The workers write to S3; a second server finds everything there without a worker.

    Of two ranks for each worker: every file of a cache is a request to a server in Python.
    """
    log = tmp_path / "log"
    (log / "job").mkdir(parents=True)
    for trace in sorted((ranks / "job").iterdir())[:4]:
        shutil.copy(trace, log / "job")
    with s3() as bucket:
        for name, value in bucket.environ.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "worker"))
        with cluster(tmp_path, 2) as workers:
            shared_cache = settings(executor=workers.spec, cache_dir="s3://traces/kept/here")
            monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "first"))
            with Session([Root(str(log))], shared_cache) as session:
                for key in load_all(session):
                    assert session.wait(key, PATIENCE)
                first = payloads(session)
        assert len(list((tmp_path / "first" / "torch-tb-profiler").glob("*.arrow"))) == 4
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "second"))
        with Session([Root(str(log))], shared_cache) as session:  # the cluster is gone by now
            for key in load_all(session):
                assert session.wait(key, PATIENCE)
            here = {entry.name.partition(".")[2] for entry in (tmp_path / "second").rglob("*.*")}
            assert {"summary.json", "overview.preview.json", "distributed-reduced.bin"} <= here
            assert payloads(session) == first


def test_a_cache_out_of_the_servers_reach_is_an_error(
    ranks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers with a cache folder of their own: the file's state has the reason and the remedy."""
    with cluster(tmp_path, 1) as workers, Session([Root(str(ranks))], settings(executor=workers.spec)) as session:
        session._files._cache.place = str(tmp_path / "elsewhere")
        session.scan()
        error = session.view("overview", wait=True, timeout=PATIENCE).state.error
        assert error is not None
        assert error.code == "cluster"
        assert "TORCH_PROFILER_CACHE_DIR" in (error.hint or "")


def test_a_cluster_that_starts_later_is_used(ranks: Path, tmp_path: Path) -> None:
    made = Cluster(free_port(), tmp_path)
    with Session([Root(str(ranks))], settings(executor=made.spec)) as session:
        session.scan()
        error = session.view("overview", wait=True, timeout=PATIENCE).state.error
        assert error is not None
        assert error.code == "cluster"
        assert f"127.0.0.1:{made.port}" in (error.where or "")
        try:
            made.start_scheduler()
            made.add_worker()
            target = session.find(None, None, None)
            session.retry(target.span)
            answer = session.view("overview", wait=True, timeout=PATIENCE)
            assert answer.payload is not None
            assert json.loads(answer.payload)["steps"]
            # The scheduler goes while a job waits for a worker, and comes back.
            made.workers[0].kill()
            key = session.load(session.find(None, "rank1", None).span)
            assert made.scheduler is not None
            made.scheduler.kill()
            made.scheduler.wait()
            assert session.wait(key, PATIENCE)
            made.start_scheduler()
            made.add_worker()
            lost = session.find(None, "rank1", None)
            session.retry(lost.span)
            assert session.view("overview", worker="rank1", wait=True, timeout=PATIENCE).payload is not None
        finally:
            made.stop()


def test_the_missing_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError) as caught:
        make_executor("dask://localhost:8786")
    assert caught.value.hint == 'pip install "torch-tb-profiler[dask]"'


def test_a_job_that_kills_its_worker_is_an_error(tmp_path: Path) -> None:
    """One attempt is allowed here; by default a job may take three workers along before it is given up."""
    with cluster(tmp_path, 1, DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="0") as workers:
        executor = make_executor(workers.spec)
        try:
            with pytest.raises(WorkerDiedError) as caught:
                executor.submit(_die).result(PATIENCE)
            assert caught.value.hint
            workers.add_worker()
            assert executor.submit(os.getpid).result(PATIENCE) == workers.workers[1].pid
        finally:
            executor.shutdown()


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_job_reports_its_progress(tmp_path: Path) -> None:
    """A job that waits on a pipe has reported its stage to whoever submitted it."""
    with cluster(tmp_path, 1) as workers:
        _check_progress(workers)


def _check_progress(workers: Cluster) -> None:
    executor = make_executor(workers.spec)
    pipe = workers.folder / "pipe"
    os.mkfifo(pipe)
    try:
        future = executor.submit(_report_and_wait, str(pipe))
        with open(pipe, "w") as end:
            assert until(lambda: executor.progress(future) is not None)
            assert executor.progress(future) == ("reading", workers.workers[0].pid, 2, 3)
            end.write("go")
        assert future.result(PATIENCE) == "go"
        assert executor.progress(future) is None
    finally:
        executor.shutdown()


def _report_and_wait(pipe: str) -> str:
    from torch_tb_profiler.executors import report_progress

    report_progress(("reading", os.getpid(), 2, 3))
    with open(pipe) as end:
        return end.read()
