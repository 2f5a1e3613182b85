from __future__ import annotations

import errno
import gzip
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from tests.support.traces import document
from tests.support.waiting import PATIENCE, until
from torch_tb_profiler import cache
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.discovery import Catalog
from torch_tb_profiler.executors.processes import ProcessExecutor
from torch_tb_profiler.session import Root, Session, loading, log, open_traces
from torch_tb_profiler.session.cache.entries import entry_key
from torch_tb_profiler.session.log import LogFolders


def trace(count: int = 50, name: str = "aten::add", cat: str = "cpu_op") -> bytes:
    return document(
        [{"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": i * 10, "dur": 5} for i in range(count)]
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "w.1.pt.trace.json").write_bytes(trace())
    return tmp_path


def settings(**changes: Any) -> Settings:
    return replace(Settings.from_environment(), **changes)


def overview(session: Session, **names: Any) -> dict[str, Any]:
    answer = session.view("overview", **names, wait=True, timeout=PATIENCE)
    assert answer.payload is not None, answer.state
    payload: dict[str, Any] = json.loads(answer.payload)
    return payload


def test_nothing_is_parsed_until_it_is_requested(folder: Path) -> None:
    with Session([Root(str(folder))], settings()) as session:
        session.scan()
        target = session.find(None, None, None)
        assert session.state(target.span).state == "waiting"
        payload = overview(session)
        assert payload["steps"][0]["duration_ns"] == 495_000
        assert session.state(target.span).state == "ready"


def test_open_traces_are_bounded_by_their_events(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "run" / "w.2.pt.trace.json").write_bytes(trace(80))
    monkeypatch.setattr(open_traces, "BYTES_PER_TRACE", 0)
    with Session([Root(str(folder))], settings(memory_bytes=100 * open_traces.BYTES_PER_EVENT)) as session:
        session.scan()
        for span, count in (("1", 50), ("2", 80), ("1", 50), ("2", 80)):
            answer = session.view("trace", span=span, wait=True, timeout=PATIENCE)
            assert answer.payload is not None
            assert json.loads(answer.payload)["counts"]["slices"] == count
            assert len(session._files._open) == 1


@pytest.mark.parametrize(
    ("packed", "sizes", "cached"), [(True, 11, True), (True, 13, False), (False, 0.9, True), (False, 1.1, False)]
)
def test_a_packed_file_counts_as_twelve_times_its_size(
    tmp_path: Path, packed: bool, sizes: float, cached: bool
) -> None:
    """Files larger than a sixteenth of the limit are cached; here the limit is a multiple of the stored size."""
    content = trace(2000)
    stored = gzip.compress(content) if packed else trace(len(gzip.compress(content)) // 80)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / f"w.1.pt.trace.json{'.gz' if packed else ''}").write_bytes(stored)
    folder = tmp_path / "cache"
    limit = int(16 * sizes * len(stored))
    with Session(
        [Root(str(tmp_path / "run"))], settings(small_file_bytes=limit, cache_dir=str(folder))
    ) as session:
        session.scan()
        overview(session)
    assert any(folder.glob("*.arrow")) == cached


def test_a_file_that_yields_nothing_is_failed_with_reason_and_place(folder: Path) -> None:
    (folder / "run" / "broken.pt.trace.json").write_bytes(b"")
    with Session([Root(str(folder))], settings()) as session:
        session.scan()
        answer = session.view("overview", worker="broken", wait=True, timeout=PATIENCE)
        assert answer.payload is None
        error = answer.state.error
        assert error is not None
        assert (error.code, error.message) == ("trace", "the file is empty")
        assert error.where == "run/broken.pt.trace.json"
        assert error.hint
        assert overview(session, worker="w")["steps"]


def test_a_failed_file_can_be_retried(folder: Path) -> None:
    file = folder / "run" / "w.1.pt.trace.json"
    whole = file.read_bytes()
    file.write_bytes(b" " * len(whole))
    stat = os.stat(file)
    with Session([Root(str(folder))], settings()) as session:
        session.scan()
        assert session.view("overview", wait=True, timeout=PATIENCE).state.state == "failed"
        file.write_bytes(whole)
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        target = session.find(None, None, None)
        session.retry(target.span)
        assert overview(session)["steps"]


def test_a_replaced_file_is_read_again(folder: Path) -> None:
    with Session([Root(str(folder))], settings()) as session:
        session.scan()
        assert overview(session)["steps"][0]["duration_ns"] == 495_000
        (folder / "run" / "w.1.pt.trace.json").write_bytes(trace(100))
        session.scan()
        assert overview(session)["steps"][0]["duration_ns"] == 995_000


def test_a_file_that_has_gone_is_a_named_failure(folder: Path) -> None:
    with Session([Root(str(folder))], settings()) as session:
        session.scan()
        (folder / "run" / "w.1.pt.trace.json").unlink()
        answer = session.view("overview", wait=True, timeout=PATIENCE)
        assert answer.state.error is not None
        assert answer.state.error.code == "storage"


def test_a_growing_file_is_left_alone_until_two_listings_agree(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed, scan = threading.Event(), LogFolders.scan

    def scan_stepwise(folders: LogFolders) -> Catalog:
        """List once; the next listing waits until it is allowed."""
        if folders.scanned:
            assert allowed.wait(PATIENCE)
        return scan(folders)

    monkeypatch.setattr(LogFolders, "scan", scan_stepwise)
    # No file is old enough for the first listing, however long that takes to begin.
    monkeypatch.setattr(log, "MIN_SETTLED_SECONDS", 1e9)
    with Session([Root(str(folder))], settings(poll_seconds=0.1)) as session:
        session.start()
        until(lambda: session.scanned)
        assert session.view("overview").state.state == "waiting"
        allowed.set()
        assert until(lambda: session.view("overview").payload)


def test_workers_parse_large_files_and_the_cache_serves_the_second_session(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = settings(small_file_bytes=1, executor="processes:1")
    with Session([Root(str(folder))], large) as session:
        session.scan()
        first = overview(session)
        assert multiprocessing.active_children()
    entries = list(Path(large.cache_dir).iterdir())
    assert {entry.suffix for entry in entries} == {".arrow", ".json"}
    monkeypatch.setattr(loading.Loader, "load", lambda *_, **__: pytest.fail("the file was read again"))
    with Session([Root(str(folder))], large) as session:
        session.scan()
        assert overview(session) == first


def test_a_script_without_a_main_guard_may_open_a_large_file(folder: Path) -> None:
    """Worker processes do not run the script again."""
    script = folder / "script.py"
    script.write_text(
        "import multiprocessing, os, sys, torch_tb_profiler\n"
        "print('runs in', os.getppid(), file=sys.stderr)\n"
        "with torch_tb_profiler.open(sys.argv[1]) as log:\n"
        "    assert log.run().overview().data.steps\n"
        "    assert multiprocessing.active_children()\n"
        "    print(__file__, __spec__)\n"
    )
    environment = {**os.environ, "TORCH_PROFILER_SMALL_FILE_BYTES": "1", "TORCH_PROFILER_EXECUTOR": "processes:1"}
    command = [sys.executable, str(script), str(folder / "run")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(script), "None"]
    assert done.stderr.count("runs in") == 1


def test_a_cached_trace_is_the_trace(folder: Path) -> None:
    large = settings(small_file_bytes=1, executor="serial")
    with Session([Root(str(folder))], large) as session:
        session.scan()
        overview(session)
        target = session.find(None, None, None)
        key = session.load(target.span)
        state, opened = session._files.open(key, None)
        store = cache.Cache.from_settings(large)
        again = store.load_trace(entry_key(key))
    assert state.state == "ready"
    assert opened is not None and again is not None
    for name in opened.events.__struct_fields__:
        assert (getattr(opened.events, name) == getattr(again.events, name)).all()
    assert list(opened.strings) == list(again.strings)
    assert again.args.keys() == opened.args.keys()


@pytest.mark.parametrize("damage", [b"", b"ARROW1\0\0", b"x" * 5000])
def test_a_damaged_cache_means_reading_again(folder: Path, damage: bytes) -> None:
    large = settings(small_file_bytes=1, executor="serial")
    with Session([Root(str(folder))], large) as session:
        session.scan()
        first = overview(session)
    for entry in Path(large.cache_dir).iterdir():
        entry.write_bytes(damage)
    with Session([Root(str(folder))], large) as session:
        session.scan()
        assert overview(session) == first


def test_a_full_disk_costs_only_the_cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object, **kwargs: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    large = settings(small_file_bytes=1, executor="serial")
    with Session([Root(str(folder))], large) as session:
        session.scan()
        assert overview(session)["steps"]
    assert list(Path(large.cache_dir).iterdir()) == []


def test_the_cache_stays_within_its_limit(tmp_path: Path) -> None:
    store = cache.Cache(str(tmp_path), 1000)
    for i in range(10):
        payload = json.dumps("x" * 300).encode()
        assert store.save_json(f"key{i}", "summary", payload)
        os.utime(tmp_path / f"key{i}.summary.json", (i, i))
    names = {entry.name for entry in tmp_path.iterdir()}
    assert "key9.summary.json" in names
    assert sum(entry.stat().st_size for entry in tmp_path.iterdir()) <= 1300


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSEGV], ids=["killed", "crashed"])
def test_a_worker_that_dies_while_reading_is_a_failed_file_that_can_be_retried(
    folder: Path, how: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = folder / "run" / "slow.pt.trace.json"
    os.mkfifo(pipe)  # the worker blocks on it in the middle of its job
    executor = ProcessExecutor(1)
    session = Session([Root(str(folder))], settings(small_file_bytes=0))
    monkeypatch.setattr("torch_tb_profiler.executors.make_executor", lambda *_: executor)
    try:
        session.scan()
        target = session.find(None, "w", None)
        span = structs.replace(target.span, file=structs.replace(target.span.file, path="run/slow.pt.trace.json"))
        key = session.load(span)
        assert until(lambda: bool(executor._workers[0].pool and executor._workers[0].pool._processes))
        for process in executor._workers[0].pool._processes.values():  # type: ignore[union-attr]
            assert process.pid is not None
            os.kill(process.pid, how)
        assert session.wait(key, PATIENCE)
        error = session.state(span).error
        assert error is not None
        assert error.code == "worker_died"
        pipe.unlink()
        session.retry(target.span)
        assert overview(session)["steps"]
    finally:
        session.close()


def test_a_file_that_is_asked_for_after_the_session_was_closed_fails_at_once(folder: Path) -> None:
    session = Session([Root(str(folder))], settings())
    session.scan()
    session.close()
    state = session.view("overview", "run", "w", None, wait=True, timeout=PATIENCE).state
    assert state.error is not None
    assert (state.error.code, state.error.message) == ("usage", "the log is closed")


WHILE_PYTHON_ENDS = """
import sys
from concurrent.futures import thread
from tests.support.waiting import until
from torch_tb_profiler.session import jobs, open_session

# The columns have been read; then the server ends, which waits for the threads that load files.
jobs.return_memory = lambda events: until(lambda: thread._shutdown)
session = open_session(sys.argv[1])
session.load(session.find(None, None, None).span)
"""


def test_a_server_that_ends_while_a_file_is_read_logs_no_error(folder: Path) -> None:
    command = [sys.executable, "-c", WHILE_PYTHON_ENDS, str(folder)]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE, cwd=Path(__file__).parents[2]
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def merged_file(folder: Path) -> None:
    """Write two ranks into `node0`, a device each."""
    events = []
    for rank in (0, 1):
        for i in range(5):
            base = {"ph": "X", "pid": rank, "ts": 100 * i, "args": {"correlation": i, "device": rank, "stream": 7}}
            events.append({**base, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "tid": 1, "dur": 5})
            events.append({**base, "cat": "kernel", "name": "k", "tid": 7, "dur": 10 + rank})
    (folder / "node0.json.gz").write_bytes(gzip.compress(json.dumps(events).encode()))


def test_a_merged_file_that_is_loaded_during_a_request_gives_one_rank(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    merged_file(tmp_path)
    with Session([Root(str(tmp_path))], settings()) as session:
        session.scan()
        before = session.find(None, None, None)
        overview(session)
        assert before.names.worker == "node0"
        monkeypatch.setattr(session._targets, "resolve_and_request", lambda *_: before)
        answer = session.view("overview", wait=True, timeout=PATIENCE)
        assert answer.worker == "node0/rank0" and answer.payload is not None
        assert [device["id"] for device in json.loads(answer.payload)["devices"]] == [0]
        _, trace = session.trace(wait=True, timeout=PATIENCE)
        assert trace is not None and len(trace) == 10


def test_a_merged_file_is_one_worker_per_rank(tmp_path: Path) -> None:
    merged_file(tmp_path)
    with Session([Root(str(tmp_path))], settings()) as session:
        session.scan()
        assert overview(session, worker="node0")["steps"][0]["categories"]["kernel"] > 0
        run = session.catalog.run(None)
        assert [(w.name, w.rank) for w in session.workers(run)] == [("node0/rank0", 0), ("node0/rank1", 1)]
        first, second = (overview(session, worker=f"node0/rank{rank}") for rank in (0, 1))
        assert first["devices"][0]["id"] == 0
        assert second["devices"][0]["id"] == 1
    with Session([Root(str(tmp_path))], settings()) as session:  # requested before the file was loaded
        session.scan()
        assert overview(session, worker="node0/rank1")["devices"][0]["id"] == 1
    for unknown in ("node0/rank2", "node1/rank0", "node0/rank"):
        with Session([Root(str(tmp_path))], settings()) as session:
            session.scan()
            with pytest.raises(NotFoundError, match=unknown):
                session.view("overview", worker=unknown, wait=True)
