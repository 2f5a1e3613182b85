"""A command loads files in its own process: one large file at a time, with the same limits, until it is closed."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.session.test_prefetch import Queue
from tests.support.traces import document
from tests.support.waiting import PATIENCE, until
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.cache import Cache
from torch_tb_profiler.executors import limited_memory
from torch_tb_profiler.session import Session, open_session
from torch_tb_profiler.session.cache.entries import entry_key

resource = pytest.importorskip("resource")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 0, "dur": 5}
    for worker in ("one", "two"):
        (tmp_path / f"{worker}.1.pt.trace.json").write_bytes(document([event]))
    return tmp_path


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Queue:
    queue = Queue()
    monkeypatch.setattr("torch_tb_profiler.executors.make_executor", lambda *_: queue)
    monkeypatch.setenv("TORCH_PROFILER_NATIVE", "0")  # as it was before, at the end
    return queue


@pytest.fixture
def settings() -> Settings:
    return replace(Settings.from_environment(), small_file_bytes=0)


@pytest.fixture
def command(log: Path, settings: Settings, queue: Queue) -> Iterator[Session]:
    with open_session(str(log), settings, own_process=True) as session:
        yield session


def test_a_large_file_is_loaded_here_and_cached_and_not_opened_again(
    command: Session, queue: Queue, settings: Settings
) -> None:
    assert command.view("operators", worker="one", wait=True, timeout=PATIENCE).payload and not queue.jobs
    file = command.find(None, "one", None).file.id
    cache = Cache.from_settings(settings)
    cached = cache.load_trace(entry_key(file))
    assert cached is not None and not cached.events.start.flags.writeable
    _, trace = command.trace(worker="one")
    assert trace is not None and trace.events.start.flags.writeable, "it is the loaded trace, not a mapped file"


def test_files_requested_while_it_loads_go_to_workers(log: Path, settings: Settings, queue: Queue) -> None:
    pipe = log / "one.1.pt.trace.json"
    content = pipe.read_bytes()
    with open_session(str(log), settings, own_process=True) as session:
        one, two = (session.find(None, worker, None).span for worker in ("one", "two"))
        pipe.unlink()
        os.mkfifo(pipe)  # reading waits for its writer
        session.load(one)
        session.load(two)
        assert [str(job[2][0].path) for job in queue.jobs] == [two.file.path]
        pipe.write_bytes(content)
        assert session.wait(one.file.id, PATIENCE)


def test_loading_stops_when_the_session_is_closed(log: Path, settings: Settings, queue: Queue) -> None:
    pipe = log / "one.1.pt.trace.json"
    content = pipe.read_bytes()
    session = open_session(str(log), settings, own_process=True)
    span = session.find(None, "one", None).span
    pipe.unlink()
    os.mkfifo(pipe)
    file = session.load(span)
    closing = threading.Thread(target=session.close)
    with pipe.open("wb") as writer:  # opens once reading has started
        closing.start()
        until(lambda: session._files._loader.closed)
        writer.write(content)
    closing.join(PATIENCE)
    assert not closing.is_alive()
    error = session._files.state(file).error
    assert error is not None and error.code == "worker_died"


def test_a_server_and_a_notebook_load_large_files_in_workers(log: Path, settings: Settings, queue: Queue) -> None:
    with open_session(str(log), settings) as session:
        session.view("operators", worker="one")
        assert len(queue.jobs) == 1


def test_a_configured_executor_is_used_by_a_command_too(log: Path, settings: Settings, queue: Queue) -> None:
    with open_session(str(log), replace(settings, executor="dask://nowhere:1"), own_process=True) as session:
        session.view("operators", worker="one")
        assert len(queue.jobs) == 1


def test_the_memory_limit_ends_with_its_block() -> None:
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with limited_memory(1 << 40):
        assert resource.getrlimit(resource.RLIMIT_DATA) == (1 << 40, before[1])
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
    with limited_memory(0):
        assert resource.getrlimit(resource.RLIMIT_DATA) == before


NCCL = {
    "ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "pid": 0, "tid": 7, "ts": 9, "dur": 5,
    "args": {"device": 0, "stream": 7, "Collective name": "allreduce", "In msg nelems": 4, "dtype": "Float"},
}  # fmt: skip


def _write_ranks(log: Path, *names: str) -> None:
    for file in log.iterdir():
        file.unlink()
    for rank, name in enumerate(names):
        info = {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2}}
        (log / f"{name}.1.pt.trace.json").write_bytes(document([NCCL], **info))


def _reductions(place: str) -> set[str]:
    return {path.name.split(".", 1)[1] for path in Path(place).glob("*-reduced.*")}


def test_the_only_trace_of_a_log_is_reduced_when_somebody_asks(
    log: Path, settings: Settings, queue: Queue
) -> None:
    _write_ranks(log, "one")
    place = Cache.from_settings(settings).place
    with open_session(str(log), settings, own_process=True) as session:
        assert session.view("overview", wait=True, timeout=PATIENCE).payload and not queue.jobs
        assert _reductions(place) == set()
        payload = session.view("distributed", wait=True, timeout=PATIENCE).payload
    reductions = _reductions(place)
    assert payload and reductions
    with open_session(str(log), settings, own_process=True) as session:
        assert session.view("distributed", wait=True, timeout=PATIENCE).payload == payload
    assert _reductions(place) == reductions


def test_one_trace_of_several_is_reduced_when_it_is_loaded(log: Path, settings: Settings, queue: Queue) -> None:
    _write_ranks(log, "one", "two")
    with open_session(str(log), settings, own_process=True) as session:
        assert session.view("overview", worker="one", wait=True, timeout=PATIENCE).payload and not queue.jobs
    assert len(_reductions(Cache.from_settings(settings).place)) == 2


def test_preparing_the_tabs_of_the_only_trace_reduces_it(log: Path, settings: Settings, queue: Queue) -> None:
    _write_ranks(log, "one")
    with open_session(str(log), settings, own_process=True) as session:
        assert session.view("overview", wait=True, timeout=PATIENCE).payload and not queue.jobs
        session.build_answers(None, None, None)
    assert len(_reductions(Cache.from_settings(settings).place)) == 2
