"""A folder of Composer's files: its ranks, its overview, and what more workers of the loader change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.producers.composer import EPOCH, Batch, content, cycle, merge_ranks
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.session import Root, Session

SLOW, FAST = [Batch(load=60 + n % 3) for n in range(12)], [Batch(load=2 + n % 3) for n in range(12)]
RANKS = [cycle([Batch(60)] * 2, rank=0), cycle([Batch(30)] * 3, rank=1, start=EPOCH + 900, sync=EPOCH + 800)]


def put(root: Path, *names_and_contents: tuple[str, bytes]) -> None:
    for name, data in names_and_contents:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def answer(session: Session, view: str, **names: Any) -> dict[str, Any]:
    payload = session.view(view, **names, wait=True).payload
    assert payload is not None
    decoded: dict[str, Any] = json.loads(payload)
    return decoded


def sentence(parts: list[dict[str, str]]) -> str:
    return "".join(part["text"] for part in parts)


def open_(root: Path) -> Session:
    session = Session([Root(str(root))], Settings(cache_bytes=0))
    session.scan()
    return session


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    put(
        tmp_path,
        ("workers0/traces/ep0-ba12-rank0.json", content(cycle(SLOW))),
        ("workers8/traces/ep0-ba12-rank0.json", content(cycle(FAST), closed=False)),
        ("both/traces/ep0-ba2-rank0.json", content(RANKS[0])),
        ("both/traces/ep0-ba2-rank1.json", content(RANKS[1])),
        ("both/traces/node0.json", content(merge_ranks(*RANKS))),
        ("merged/traces/node0.json", content(merge_ranks(*RANKS))),
    )
    return tmp_path


def test_the_diff_names_data_loading_after_adding_loader_workers(folder: Path) -> None:
    with open_(folder) as session:
        before = answer(session, "overview", run="workers0/traces")
        after = answer(session, "overview", run="workers8/traces")
        diff = answer(session, "diff", run="workers8/traces", params={"base_run": "workers0/traces"})
    loads = {"before": sum(each.load for each in SLOW), "after": sum(each.load for each in FAST)}
    assert [sum(step["categories"]["dataloader"] for step in of["steps"]) for of in (before, after)] == [
        1000 * loads["before"],
        1000 * loads["after"],
    ]
    (advised,) = before["recommendations"]
    ratio = loads["before"] / sum(each.work for each in SLOW)
    assert f"loading takes {ratio:.3g} times as long as the batch itself" in sentence(advised["text"])
    # The mean of each twelve steps differs by 58 us, all of it waits for data.
    assert diff["step"]["delta_ns"] == -1000 * (loads["before"] - loads["after"]) / 12
    assert "Nearly all of the change comes from data loading (−58.0 µs)." in sentence(diff["explanation"][0])


def test_no_rank_is_listed_twice(folder: Path) -> None:
    with open_(folder) as session:
        both, alone = session.catalog.run("both/traces"), session.catalog.run("merged/traces")
        assert [(worker.name, worker.rank) for worker in both.workers] == [("rank0", 0), ("rank1", 1)]
        for number in (0, 1):  # a merged file answers for a rank before anybody knows which it holds
            single = answer(session, "overview", run=both.name, worker=f"rank{number}")
            part = answer(session, "overview", run=alone.name, worker=f"node0/rank{number}")
            assert single["steps"] == part["steps"]
        assert [(w.name, w.rank) for w in session.workers(alone)] == [("node0/rank0", 0), ("node0/rank1", 1)]


def test_the_timeline_names_the_trainer(folder: Path) -> None:
    with open_(folder) as session:
        trace = answer(session, "trace", run="workers0/traces")
    (track,) = [track for track in trace["tracks"] if track["role"] == "trainer"]
    assert (track["name"], track["slices"]) == ("Trainer", 5 * len(SLOW))
