from __future__ import annotations

import os

import pytest

from torch_tb_profiler.base.errors import StorageError
from torch_tb_profiler.storage import remote
from torch_tb_profiler.storage.remote import RangeReader


@pytest.fixture(autouse=True)
def _small_blocks_without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "BLOCK_BYTES", 100)
    monkeypatch.setattr(remote, "RETRY_SECONDS", (0.0, 0.0))


def test_each_block_is_fetched_once_and_in_order() -> None:
    content, fetched = os.urandom(250), []

    def fetch(start: int, end: int) -> bytes:
        fetched.append((start, end))
        return content[start:end]

    with RangeReader(fetch, 250, "x") as stream:
        assert b"".join(iter(lambda: stream.read(33), b"")) == content
    assert fetched == [(0, 100), (100, 200), (200, 250)]


@pytest.mark.parametrize(("broken", "exhausted"), [(0, False), (2, False), (3, True)])
def test_a_broken_block_is_retried_until_the_attempts_run_out(broken: int, exhausted: bool) -> None:
    fetched = []

    def fetch(start: int, end: int) -> bytes:
        fetched.append(start)
        if start == 0 and fetched.count(0) <= broken:
            raise OSError
        return b"x" * (end - start)

    with RangeReader(fetch, 150, "bucket/w.json") as stream:
        if exhausted:
            with pytest.raises(StorageError, match="byte 0") as caught:
                stream.read(100)
            assert caught.value.where == "bucket/w.json"
        else:
            assert stream.read(100) == b"x" * 100
    assert fetched.count(0) == min(broken + 1, 3)


def test_a_file_that_shrinks_while_it_is_read_is_an_error() -> None:
    with RangeReader(lambda start, end: b"short", 150, "x") as stream:
        with pytest.raises(StorageError, match="changed while it was read"):
            stream.read(100)
