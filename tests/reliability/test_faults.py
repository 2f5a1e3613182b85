"""The session under faults of files, disks, caches and clocks: right numbers or a named state, and recovery."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.logs import VIEWS, expected, payload, trace, write_log
from tests.support.server import FULL_DISK
from tests.support.waiting import until
from torch_tb_profiler.base.errors import StorageError, TooLargeError
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.cache import Cache, cache_key, folder
from torch_tb_profiler.executors import ProcessExecutor
from torch_tb_profiler.session import Root, Session, jobs, summary
from torch_tb_profiler.storage import FileId, open_location


def settings(**changes: Any) -> Settings:
    usual: dict[str, Any] = {"small_file_bytes": 0, "executor": "serial", "poll_seconds": 0.1}
    return replace(Settings.from_environment(), **{**usual, **changes})


@contextmanager
def opened(log: Path, **changes: Any) -> Iterator[Session]:
    with Session([Root(str(log))], settings(**changes)) as session:
        session.scan()
        yield session


def all_payloads(session: Session) -> dict[tuple[str, str, str], Any]:
    return {
        (run.name, worker.name, slug): payload(session, slug, run.name, worker.name)
        for run in session.catalog.runs
        for worker in run.workers
        for slug in VIEWS
    }


# ---- memory ---------------------------------------------------------------------------------------------


def _take(size: int) -> int:
    return len(bytearray(size))


def test_a_worker_that_wants_too_much_memory_fails_its_job_and_takes_the_next() -> None:
    pytest.importorskip("resource")
    executor = ProcessExecutor(1, memory=1 << 30)
    try:
        assert executor.submit(_take, 1000).result(60) == 1000
        with pytest.raises(MemoryError):
            executor.submit(_take, 2 << 30).result(60)
        assert executor.submit(_take, 1000).result(60) == 1000
    finally:
        executor.shutdown()


def test_a_file_that_takes_too_much_memory_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = write_log(tmp_path / "log", workers=1)

    def starve(*args: object, **kwargs: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch, opened(log) as session:
        patch.setattr(jobs, "read_trace", starve)
        error = session.view("overview", wait=True).state.error
        assert error is not None
        assert error.code == TooLargeError.code
        assert "torch-tb-profiler slice" in (error.hint or "")
        patch.undo()
        target = session.find(None, None, None)
        session.retry(target.span)
        assert payload(session, "overview")["steps"]


# ---- disks and caches -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_disk_that_is_full_costs_only_the_cache(tmp_path: Path) -> None:
    """Every write beyond the first 4 KiB fails in the server and in its worker, as on a full disk."""
    log = write_log(tmp_path / "log", workers=1)
    cache = tmp_path / "cache"
    command = [sys.executable, "-c", "import sys; from torch_tb_profiler.cli import main; sys.exit(main())"]
    environ = {**os.environ, "TORCH_PROFILER_SMALL_FILE_BYTES": "0", "TORCH_PROFILER_CACHE_DIR": str(cache)}
    command += ["view", "kernels", str(log)]
    answers = [
        subprocess.run([*launcher, *command], env=environ, capture_output=True, timeout=120)
        for launcher in (FULL_DISK, ())
    ]
    assert answers[0].returncode == 0, answers[0].stderr
    assert answers[0].stdout == answers[1].stdout
    assert b"the cache in" in answers[0].stderr
    assert [entry.suffix for entry in cache.iterdir() if entry.name.startswith(".")] == []


def test_a_real_full_disk(tmp_path: Path) -> None:
    """A file system of 256 KiB: nothing of the large trace stays on it, the numbers are right."""
    log = write_log(tmp_path / "log", workers=2, count=5000)
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("this user may not mount a small file system")
    try:
        with opened(log, cache_dir=str(disk)) as session:
            assert all_payloads(session) == expected(log, settings(cache_dir=str(tmp_path / "large")))
        assert not list(disk.glob(".*"))
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize("place", ["file", "read_only"])
def test_a_cache_that_cannot_be_made_costs_only_the_cache(tmp_path: Path, place: str) -> None:
    log = write_log(tmp_path / "log", workers=1)
    if place == "file":
        (tmp_path / "file").write_text("no folder")
    where = str(tmp_path / "file") if place == "file" else "/proc/no/cache"
    with opened(log, cache_dir=where) as session:
        assert payload(session, "kernels")


def test_damage_anywhere_in_the_cache_means_reading_again(tmp_path: Path) -> None:
    """Any byte of any entry changed, cut off or lengthened: never another number."""
    log = write_log(tmp_path / "log", workers=1, count=100)
    right = expected(log, settings())
    cache = Path(settings().cache_dir)
    chance = random.Random(7)
    for round_ in range(30):
        victims = sorted(cache.iterdir())
        victim = victims[round_ % len(victims)]
        content = bytearray(victim.read_bytes())
        at = chance.randrange(len(content))
        if round_ % 5 == 3:
            del content[at:]
        elif round_ % 5 == 4:
            content += content[:at]
        else:
            content[at] ^= 1 << chance.randrange(8)
        victim.write_bytes(content)
        with opened(log) as session:
            assert all_payloads(session) == right, (victim.name, at)


def test_entries_of_another_version_are_not_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = write_log(tmp_path / "log", workers=1)
    right = expected(log, settings())
    before = {entry.name for entry in Path(settings().cache_dir).iterdir()}
    monkeypatch.setattr(summary, "cache_key", lambda file, structure: cache_key(file, f"{structure}, another"))
    assert cache_key(FileId("a", "b"), "") != cache_key(FileId("b", "a"), "")
    with opened(log) as session:
        assert all_payloads(session) == right
    after = {entry.name for entry in Path(settings().cache_dir).iterdir()}
    assert before < after
    assert len(after) == 2 * len(before)


def test_a_cache_that_is_emptied_under_an_open_session_is_filled_again(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log", workers=3)
    right = expected(log, settings())
    with opened(log, memory_bytes=1) as session:  # every other trace has to be opened again
        for _ in range(3):
            assert all_payloads(session) == right
            shutil.rmtree(settings().cache_dir)


@pytest.mark.slow
def test_two_servers_share_a_cache_that_is_too_small_for_both(tmp_path: Path) -> None:
    """Each drops what the other has just written; both give the right numbers."""
    log = write_log(tmp_path / "log", workers=6, count=300)
    right = expected(log, settings(cache_dir=str(tmp_path / "own")))
    size = max(entry.stat().st_size for entry in (tmp_path / "own").iterdir())
    small = {"cache_bytes": 2 * size, "memory_bytes": 1}

    def serve(_: int) -> bool:
        with opened(log, **small) as session:
            return all(all_payloads(session) == right for _ in range(4))

    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(serve, range(2))) == [True, True]
    left = list(Path(settings().cache_dir).iterdir())
    assert not [entry for entry in left if entry.suffix == ".part"]


def test_what_a_killed_process_left_half_written_is_cleaned_up(tmp_path: Path) -> None:
    cache = Cache(str(tmp_path), 10**6)
    old, new = tmp_path / ".old.part", tmp_path / ".new.part"
    old.write_bytes(b"x")
    new.write_bytes(b"x")
    long_ago = time.time() - 2 * folder.STALE_SECONDS
    os.utime(old, (long_ago, long_ago))
    assert cache.save_json("key", "summary", b"{}")
    assert not old.exists()
    assert new.exists()


# ---- files that change ----------------------------------------------------------------------------------


def test_a_file_replaced_while_it_is_read_is_never_half_old_half_new(tmp_path: Path) -> None:
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

    with pytest.raises(StorageError, match="changed while it was read"):
        jobs.load_file(jobs.LoadRequest(str(log), entry.path, entry.size, listed, 0), cache, replace_once)
    assert swapped
    assert cache.load_trace(summary.entry_key(listed)) is None
    with opened(log) as session:
        assert payload(session, "kernels") == _alone(tmp_path / "alone", trace(5, 6000))


def _alone(folder: Path, content: bytes, slug: str = "kernels") -> Any:
    """The payload of a trace that nothing happens to."""
    (folder / "run0").mkdir(parents=True)
    (folder / "run0" / "w0.1.pt.trace.json").write_bytes(content)
    with opened(folder, cache_bytes=0) as session:
        return payload(session, slug)


def test_a_file_that_grows_is_shown_whole_in_the_end(tmp_path: Path) -> None:
    """Written in pieces while the folder is polled: waiting, failed or what is there so far; then all of it."""
    content = trace(1, 2000)
    file = tmp_path / "log" / "run0" / "w0.1.pt.trace.json"
    file.parent.mkdir(parents=True)
    right = _alone(tmp_path / "alone", content)
    with Session([Root(str(tmp_path / "log"))], settings()) as session:
        session.start()
        step = len(content) // 6 + 1
        for at in range(0, len(content), step):
            with file.open("ab") as end:
                end.write(content[at : at + step])
            assert until(lambda: bool(session.catalog.runs))
            answer = session.view("kernels", timeout=0.1)
            assert answer.payload is not None or answer.state.state in ("waiting", "loading", "failed")
        assert until(lambda: _settled(session) == right)


def _settled(session: Session) -> Any:
    answer = session.view("kernels", wait=True, timeout=10)
    return json.loads(answer.payload) if answer.payload is not None else None


def test_a_folder_that_is_removed_and_comes_back(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log")
    right = expected(log, settings())
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
    """A folder whose permissions bind us; root loses its privileges for the test."""
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
    with opened(nobody, cache_dir=str(nobody.parent / "cache")) as session:
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


def test_a_clock_that_jumps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten years ahead and back, for the clock and for the files: everything is still found, read and kept."""
    log = write_log(tmp_path / "log")
    right = expected(log, settings())
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


def test_forgotten_files_leave_no_trace_in_memory(tmp_path: Path) -> None:
    """Runs that vanish take what was known of them along."""
    log = tmp_path / "log"
    with opened(write_log(log)) as session:
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
