"""Faults of disks and caches cost the session time, but never change a number."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.logs import all_payloads, expected_payloads, open_log, payload, settings, write_log
from tests.support.servers.fragile import FULL_DISK
from tests.support.waiting import PATIENCE
from torch_tb_profiler.cache import Cache, cache_key, folder
from torch_tb_profiler.session.cache import entries
from torch_tb_profiler.storage import FileId

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
        subprocess.run([*launcher, *command], env=environ, capture_output=True, timeout=5 * PATIENCE)
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
        with open_log(log, cache_dir=str(disk)) as session:
            assert all_payloads(session) == expected_payloads(log, settings(cache_dir=str(tmp_path / "large")))
        assert not list(disk.glob(".*"))
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize("place", ["file", "read_only"])
def test_a_cache_that_cannot_be_created_costs_only_the_cache(tmp_path: Path, place: str) -> None:
    log = write_log(tmp_path / "log", workers=1)
    if place == "file":
        (tmp_path / "file").write_text("no folder")
    where = str(tmp_path / "file") if place == "file" else "/proc/no/cache"
    with open_log(log, cache_dir=where) as session:
        assert payload(session, "kernels")


def test_a_damaged_cache_is_read_again(tmp_path: Path) -> None:
    """Any byte of any entry changed, cut off or lengthened: never another number."""
    log = write_log(tmp_path / "log", workers=1, count=100)
    correct = expected_payloads(log, settings())
    cache = Path(settings().cache_dir)
    chance = random.Random(7)
    for round_ in range(30):
        victims = sorted(cache.iterdir())
        victim = victims[round_ % len(victims)]
        content = bytearray(victim.read_bytes())
        position = chance.randrange(len(content))
        if round_ % 5 == 3:
            del content[position:]
        elif round_ % 5 == 4:
            content += content[:position]
        else:
            content[position] ^= 1 << chance.randrange(8)
        victim.write_bytes(content)
        with open_log(log) as session:
            assert all_payloads(session) == correct, (victim.name, position)


def test_entries_of_another_version_are_not_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = write_log(tmp_path / "log", workers=1)
    correct = expected_payloads(log, settings())
    before = {entry.name for entry in Path(settings().cache_dir).iterdir()}
    monkeypatch.setattr(entries, "program_digest", lambda slugs: "another")
    assert cache_key(FileId("a", "b"), "") != cache_key(FileId("b", "a"), "")
    with open_log(log) as session:
        assert all_payloads(session) == correct
    after = {entry.name for entry in Path(settings().cache_dir).iterdir()}
    assert before < after
    added = {name.partition(".")[0] for name in after - before}
    assert len(added) == 1 and not added & {name.partition(".")[0] for name in before}


def test_a_cache_that_is_emptied_under_an_open_session_is_filled_again(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log", workers=3)
    correct = expected_payloads(log, settings())
    with open_log(log, memory_bytes=1) as session:  # every other trace has to be opened again
        for _ in range(3):
            assert all_payloads(session) == correct
            shutil.rmtree(settings().cache_dir)


@pytest.mark.slow
def test_two_servers_share_a_cache_too_small_for_both(tmp_path: Path) -> None:
    """Each drops what the other has just written; both give the right numbers."""
    log = write_log(tmp_path / "log", workers=6, count=300)
    correct = expected_payloads(log, settings(cache_dir=str(tmp_path / "own")))
    size = max(entry.stat().st_size for entry in (tmp_path / "own").iterdir())
    small = {"cache_bytes": 2 * size, "memory_bytes": 1}

    def serve(_: int) -> bool:
        with open_log(log, **small) as session:
            return all(all_payloads(session) == correct for _ in range(4))

    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(serve, range(2))) == [True, True]
    left = list(Path(settings().cache_dir).iterdir())
    assert not [entry for entry in left if entry.suffix == ".part"]


def test_partial_files_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    cache = Cache(str(tmp_path), 10**6)
    old, new = tmp_path / ".old.part", tmp_path / ".new.part"
    old.write_bytes(b"x")
    new.write_bytes(b"x")
    long_ago = time.time() - 2 * folder.MIN_STALE_SECONDS
    os.utime(old, (long_ago, long_ago))
    assert cache.save_json("key", "summary", b"{}")
    assert not old.exists()
    assert new.exists()
