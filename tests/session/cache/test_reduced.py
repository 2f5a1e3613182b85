"""The reductions that the cache holds of a trace, and their details, which are stored separately."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
import pytest

from tests.support.jobs import Job, ddp
from tests.support.waiting import PATIENCE, until
from torch_tb_profiler.analyses.distributed.operations import PACKED_ROW
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.cache import Cache
from torch_tb_profiler.session import Root, Session
from torch_tb_profiler.session.cache.packed import pack, unpack

STEPS = 20


class Inner(msgspec.Struct, frozen=True):
    values: bytes
    label: str


class Outer(msgspec.Struct, frozen=True):
    size: int | None
    inner: Inner
    times: Annotated[memoryview, np.dtype("<i8")]


def test_columns_follow_the_header_unchanged() -> None:
    value = Outer(10**30, Inner(b"\x00\xff" * 9, "ü"), memoryview(b"12345678"))
    content = pack(value)
    assert content.endswith(b"\x00\xff" * 9 + b"12345678")
    unpacked = unpack(content, Outer)
    assert unpacked == value
    assert unpacked.times.obj is content  # no copy
    with pytest.raises(ValueError, match="truncated"):
        unpack(content[:3], Outer)
    with pytest.raises(ValueError, match="another length"):
        unpack(content[:-1], Outer)
    with pytest.raises(ValueError, match="missing"):
        unpack(content, Inner)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write a job of four ranks, the second of them late."""
    job = tmp_path / "log" / "job"
    job.mkdir(parents=True)
    for rank, content in Job(4, ddp(4), steps=STEPS, straggler=1).documents().items():
        (job / f"rank{rank}.1.pt.trace.json").write_bytes(content)
    return tmp_path


@pytest.fixture
def session(folder: Path) -> Iterator[Session]:
    changes = {"cache_dir": str(folder / "cache"), "small_file_bytes": 0, "executor": "serial"}
    with Session([Root(str(folder / "log"))], replace(Settings.from_environment(), **changes)) as opened:  # type: ignore[arg-type]
        opened.scan()
        yield opened


def ask(session: Session, view: str, **params: str) -> Any:
    answer = session.view(view, run="job", params=params, wait=True, timeout=PATIENCE)
    assert answer.payload is not None, answer.state
    return json.loads(answer.payload)


def test_the_rows_to_compare_all_ranks_are_a_small_part_of_the_details(session: Session, folder: Path) -> None:
    ask(session, "distributed")
    for rows in (folder / "cache").glob("*.distributed-reduced.bin"):
        (details,) = (folder / "cache").glob(rows.name.replace("distributed-", "distributed-details-"))
        head = rows.stat().st_size - 3 * STEPS * PACKED_ROW.itemsize
        assert 0 < head < 8_000 and details.stat().st_size > 3 * STEPS * 4 * PACKED_ROW.itemsize


def test_details_are_opened_only_for_ranks_that_are_explained(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    load = Cache.load_reduced

    def loading(cache: Cache, key: str, name: str, mapped: bool) -> memoryview | None:
        opened.append(name)
        assert mapped == (name == "distributed-details-reduced")
        return load(cache, key, name, mapped)

    monkeypatch.setattr(Cache, "load_reduced", loading)
    ask(session, "distributed/steps")
    assert opened == ["distributed-reduced"] * 4
    del opened[:]
    page = ask(session, "distributed")
    assert page["meanwhile"] and 0 < len(opened) <= 4 and set(opened) == {"distributed-details-reduced"}
    del opened[:]
    ask(session, "distributed/collective", collective="3")
    assert opened == ["distributed-details-reduced"] * 4


@pytest.mark.parametrize("trace", [True, False], ids=["of the trace", "of the file"])
def test_evicted_details_are_computed_again(session: Session, folder: Path, trace: bool) -> None:
    expected = ask(session, "distributed/collective", collective="3")
    assert all(each["before"]["categories"] for each in expected["participants"])
    _evict(folder / "cache", trace)
    assert ask(session, "distributed/collective", collective="3") == expected


def test_a_request_that_does_not_wait_gets_the_state_of_reloading(session: Session, folder: Path) -> None:
    expected = ask(session, "distributed/collective", collective="3")
    _evict(folder / "cache", trace=False)

    def again() -> Any:
        return session.view("distributed/collective", run="job", params={"collective": "3"})

    first = again()
    assert (first.state.state, first.payload) == ("loading", None) and first.loading > 0
    until(lambda: again().payload is not None)
    assert json.loads(again().payload) == expected


def _evict(cache: Path, trace: bool) -> None:
    """Evict details like another server that shares the cache; evict the traces as well unless `trace`."""
    evicted = [*cache.glob("*.distributed-details-reduced.bin")]
    assert len(evicted) == 4
    for entry in evicted if trace else [*evicted, *cache.glob("*.arrow")]:
        entry.unlink()
