"""The session under faults of files, memory and clocks: right numbers or a named state, and recovery."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.logs import all_payloads, expected_payloads, open_log, payload, settings, trace, write_log
from tests.support.waiting import PATIENCE, until
from torch_tb_profiler.base.errors import StorageError, TooLargeError
from torch_tb_profiler.cache import Cache
from torch_tb_profiler.executors.processes import ProcessExecutor
from torch_tb_profiler.session import Root, Session, jobs
from torch_tb_profiler.session.cache.entries import entry_key
from torch_tb_profiler.storage import FileId, open_location

# ---- memory ---------------------------------------------------------------------------------------------


def _take(size: int) -> int:
    return len(bytearray(size))


def test_a_worker_out_of_memory_fails_its_job_and_takes_the_next() -> None:
    pytest.importorskip("resource")
    executor = ProcessExecutor(1, memory=1 << 30)
    try:
        assert executor.submit(_take, 1000).result(PATIENCE) == 1000
        with pytest.raises(MemoryError):
            executor.submit(_take, 2 << 30).result(PATIENCE)
        assert executor.submit(_take, 1000).result(PATIENCE) == 1000
    finally:
        executor.shutdown()


def test_a_file_that_takes_too_much_memory_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = write_log(tmp_path / "log", workers=1)

    def starve(*args: object, **kwargs: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch, open_log(log) as session:
        patch.setattr(jobs, "read_trace", starve)
        error = session.view("overview", wait=True).state.error
        assert error is not None
        assert error.code == TooLargeError.code
        assert "torch-tb-profiler slice" in (error.hint or "")
        patch.undo()
        target = session.find(None, None, None)
        session.retry(target.span)
        assert payload(session, "overview")["steps"]


# ---- files that change ----------------------------------------------------------------------------------


def test_a_file_replaced_while_it_is_read_is_never_mixed(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log", workers=1, count=6000)
    file = log / "run0" / "w0.1.pt.trace.json"
    new = tmp_path / "new"
    new.write_bytes(trace(5, 6000))
    place = open_location(str(log))
    entry = place.scan().entries[0]
    listed = FileId(place.uri(entry.path), entry.identity)
    cache = Cache.from_settings(settings())
    swapped: list[tuple[str, int, int, int]] = []

    def replace_once(progress: tuple[str, int, int, int]) -> None:
        if progress[0] == "reading" and not swapped:
            os.replace(new, file)
            swapped.append(progress)

    with pytest.raises(StorageError, match="changed while it was being read"):
        jobs.load_file(jobs.LoadRequest(str(log), entry.path, entry.size, listed, 0), cache, replace_once)
    assert swapped
    assert cache.load_trace(entry_key(listed)) is None
    with open_log(log) as session:
        assert payload(session, "kernels") == _alone(tmp_path / "alone", trace(5, 6000))


def _alone(folder: Path, content: bytes, slug: str = "kernels") -> Any:
    """Return the payload of a trace that nothing happens to."""
    (folder / "run0").mkdir(parents=True)
    (folder / "run0" / "w0.1.pt.trace.json").write_bytes(content)
    with open_log(folder, cache_bytes=0) as session:
        return payload(session, slug)


def test_a_growing_file_is_complete_in_the_end(tmp_path: Path) -> None:
    """Written in pieces while the folder is polled: waiting, failed or what is there so far; then all of it."""
    content = trace(1, 2000)
    file = tmp_path / "log" / "run0" / "w0.1.pt.trace.json"
    file.parent.mkdir(parents=True)
    right = _alone(tmp_path / "alone", content)
    with Session([Root(str(tmp_path / "log"))], settings()) as session:
        session.start()
        step = len(content) // 6 + 1
        for position in range(0, len(content), step):
            with file.open("ab") as end:
                end.write(content[position : position + step])
            assert until(lambda: bool(session.catalog.runs))
            answer = session.view("kernels", timeout=0.1)
            assert answer.payload is not None or answer.state.state in ("waiting", "loading", "failed")
        assert until(lambda: _final_payload(session) == right)


def _final_payload(session: Session) -> Any:
    answer = session.view("kernels", wait=True, timeout=10)
    return json.loads(answer.payload) if answer.payload is not None else None


def test_a_folder_that_is_removed_and_comes_back(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log")
    right = expected_payloads(log, settings())
    with Session([Root(str(log))], settings()) as session:
        session.start()
        assert until(lambda: bool(session.catalog.runs))
        for _ in range(2):
            log.rename(tmp_path / "away")
            assert until(lambda: session.error is not None)
            assert session.error is not None and session.error.where == str(log)
            assert session.catalog.runs, "what was known stays on the page"
            (tmp_path / "away").rename(log)
            assert until(lambda: session.error is None)
            assert all_payloads(session) == right


@pytest.fixture
def nobody(tmp_path: Path) -> Iterator[Path]:
    """Yield a folder whose permissions bind us; root loses its privileges for the test."""
    folder = Path(tempfile.mkdtemp(prefix="profiler-"))
    folder.chmod(0o755)
    root = os.geteuid() == 0
    write_log(folder / "log")
    for path in [folder, *folder.rglob("*")]:
        if root:
            os.chown(path, 65534, 65534)
    if root:
        os.seteuid(65534)
    try:
        yield folder / "log"
    finally:
        if root:
            os.seteuid(0)
        for path in folder.rglob("run*"):
            path.chmod(0o755)
        shutil.rmtree(folder)


def test_permission_denied_is_named_and_recovers(nobody: Path, tmp_path: Path) -> None:
    file, run = nobody / "run0" / "w0.1.pt.trace.json", nobody / "run0"
    with open_log(nobody, cache_dir=str(nobody.parent / "cache")) as session:
        file.chmod(0)
        error = session.view("overview", wait=True).state.error
        assert error is not None
        assert error.code == "storage"
        assert "Permission denied" in error.message
        assert session.view("overview", worker="w1", wait=True).payload is not None
        file.chmod(0o644)
        target = session.find(None, None, None)
        session.retry(target.span)
        assert payload(session, "overview")["steps"]
        run.chmod(0)
        assert session.scan().problems == ("run0: Permission denied",)
        nobody.chmod(0)
        session.scan()
        assert session.error is not None and "Permission denied" in session.error.message
        nobody.chmod(0o755)
        run.chmod(0o755)
        assert [r.name for r in session.scan().runs] == ["run0"]
        assert session.error is None


def test_files_are_found_and_cached_after_the_clock_jumps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten years ahead and back, for the clock and for the files: everything is still found, read and kept."""
    log = write_log(tmp_path / "log")
    right = expected_payloads(log, settings())
    now = time.time()
    with Session([Root(str(log))], settings()) as session:
        session.start()
        for years in (10, -10, 0):
            later = now + years * 365 * 86400
            monkeypatch.setattr(time, "time", lambda later=later: later)
            for place in (log / "run0", Path(settings().cache_dir)):
                for file in place.iterdir():
                    os.utime(file, (later - 5, later - 5))
            assert until(lambda: session.scanned and all_payloads_or_none(session) == right)


def all_payloads_or_none(session: Session) -> Any:
    try:
        return all_payloads(session)
    except AssertionError:
        return None  # a file that looks as if it were being written is waited for


def test_removed_files_free_their_memory(tmp_path: Path) -> None:
    """Runs that vanish take what was known of them along."""
    log = tmp_path / "log"
    with open_log(write_log(log)) as session:
        for seed in range(20):
            (log / "run0" / "w0.1.pt.trace.json").write_bytes(trace(seed, 20 + seed))
            session.scan()
            all_payloads(session)
            assert len(session._files._files) == 2
            assert len(session._files._open) <= 2
        shutil.rmtree(log / "run0")
        session.scan()
        assert not session._files._files
        assert not session._files._open
