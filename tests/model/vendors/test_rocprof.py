"""Tests of rocprofv3's three formats from a log folder: the timeline, two processes of a job, and memory."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.support.producers.pftrace import rocprof_pftrace
from tests.support.producers.rocpd import write_rocpd
from tests.support.producers.rocprof import GPU_INDEX, PID, RocprofRun, chrome, draw_training, rocprof_json
from tests.support.traces import read_bytes
from tests.support.views import ask
from tests.support.waiting import PATIENCE
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.session import Root, Session

FORMATS = ("db", "json", "pftrace")
RANKS = (0, 1)
LATE = 50_000
"""Time by which the collective of rank 1 begins later and is shorter; it ends with that of rank 0, ns."""


def rank_run(rank: int) -> RocprofRun:
    run = draw_training(2)
    run.environment = {"RANK": str(rank), "WORLD_SIZE": "2"}
    run.dispatches = [
        each if each.kernel == 0 else each.__class__(**{**vars(each), "start": each.start + LATE * rank})
        for each in run.dispatches
    ]
    return run


class OpenedRun(NamedTuple):
    format: str
    session: Session

    def view(self, slug: str, worker: str = "7", **params: str) -> Any:
        answer = self.session.view(slug, worker=worker, params=params, wait=True, timeout=PATIENCE)
        assert answer.payload is not None
        return json.loads(answer.payload)


@pytest.fixture(scope="module", params=FORMATS)
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenedRun]:
    root = tmp_path_factory.mktemp("log")
    (root / "host").mkdir()
    for rank in RANKS:
        path, run = root / f"host/{7 + rank}_results.{request.param}", rank_run(rank)
        if request.param == "db":
            write_rocpd(path, run)
        else:
            path.write_bytes(rocprof_json(run) if request.param == "json" else rocprof_pftrace(run))
    with Session([Root(str(root))], Settings(cache_bytes=0)) as session:
        session.scan()
        yield OpenedRun(request.param, session)


def test_every_drawn_slice_is_on_the_timeline(opened: OpenedRun) -> None:
    for rank in RANKS:
        run, timeline = rank_run(rank), opened.view("trace", str(7 + rank))
        on_card = Counter([each.stream for each in run.dispatches] + [each.stream for each in run.copies])
        found = {
            track["name"]: track["slices"]
            for track in timeline["tracks"]
            if track["kind"] == "stream" and track["slices"]
        }
        assert found == {f"stream {stream}": count for stream, count in on_card.items()}
        threads = [track for track in timeline["tracks"] if track["kind"] == "thread"]
        assert {track["thread"] for track in threads} == {f"{PID}/{PID}"}
        assert sum(track["slices"] for track in threads) == len(run.calls)
        assert {group["device"] for group in timeline["groups"]} == {None, GPU_INDEX}


def test_the_timeline_equals_that_of_the_same_run_written_by_pytorch(opened: OpenedRun) -> None:
    mine, other = opened.view("trace"), ask(read_bytes(chrome(rank_run(0))), "trace")
    # Packets lack the names of devices, PyTorch those of programs. The reason for the missing time of day differs,
    # and Perfetto opens only PyTorch's files.
    unlike = {"reasons", "groups", "perfetto"} | ({"headline"} if opened.format == "pftrace" else set())
    assert len(mine["tracks"]) > 4
    sampled = [row for row in mine["tracks"] if row["kind"] == "counter" and not row["role"]]
    assert [row["name"] for row in sampled] == (
        ["COPY BYTES to Agent [1] (GPU)"] if opened.format == "pftrace" else []
    )
    mine["counts"]["counters"] -= sum(row["samples"] for row in sampled)
    mine["tracks"] = [row for row in mine["tracks"] if row not in sampled]
    for number, row in enumerate(sorted(mine["tracks"], key=lambda row: row["id"])):
        row["id"] = number  # as if there were no counters of the file
    for key in mine.keys() - unlike:
        assert mine[key] == other[key], key
    places = [[(each["kind"], each["pid"], each["device"]) for each in of["groups"]] for of in (mine, other)]
    assert places[0] == places[1]


def test_two_processes_are_one_job(opened: OpenedRun) -> None:
    found = opened.view("distributed")
    known = opened.format == "db"  # the environment of the process says the rank; no other format holds it
    assert [(each["worker"], each["rank"], each["compared"], each["calls"]) for each in found["ranks"]] == [
        (str(7 + rank), rank if known else None, True, 2) for rank in RANKS
    ]
    times = {row["worker"]: (row["name"], row["latency_ns"], row["exposed_ns"]) for row in found["collectives"]}
    expected = {}
    for rank in RANKS:
        talk = [each for each in rank_run(rank).dispatches if each.kernel == 1]
        work = [each for each in rank_run(rank).dispatches if each.kernel == 0]
        hidden = sum(max(min(a.end, b.end) - max(a.start, b.start), 0) for a, b in zip(talk, work, strict=True))
        latency = sum(each.end - each.start for each in talk)
        expected[str(7 + rank)] = ("nccl:all_reduce", latency, latency - hidden)
    assert times == expected
    sentences = " ".join(phrase["text"] for phrase in (*found["headline"], *found["explanation"]))
    assert ("rank 1" in sentences.lower()) == known
    assert ("worker 8" in sentences.lower()) == (not known)
    assert "rank 8" not in sentences.lower()


def test_memory_of_the_driver_is_not_rank_run(opened: OpenedRun) -> None:
    opened.view("trace")
    reasons = opened.session.unavailable(opened.session.find(None, "7", None))
    assert reasons is not None and "(rocprofv3 records calls of the driver" in reasons["memory"]
