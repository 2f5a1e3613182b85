"""A merged file of Composer with PyTorch's own files of its ranks beside it: joined by rank."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.ingest.composer.test_beside import AHEAD, BATCHES, LATE, MEETING, files, lanes, workers
from tests.ingest.composer.test_folder import answer, open_, put
from tests.support.producers.composer import (
    EPOCH,
    content,
    copy_events,
    cycle,
    merge_ranks,
    pytorch_events,
    pytorch_file,
)
from torch_tb_profiler.model.health import HealthNote
from torch_tb_profiler.session import Session

RANKS = (0, 1, 2)
NAMES = {rank: f"NVIDIA H{rank}" for rank in RANKS}


def start(rank: int) -> int:
    """Return a start in µs on the rank's own clock."""
    return EPOCH + (LATE + AHEAD) * rank


def torch(rank: int) -> list[dict[str, Any]]:
    return pytorch_events(start=start(rank), kernel=12 + rank)


def write_rank(rank: int) -> bytes:
    """Return PyTorch's file of a rank, with a device of its own."""
    reported = json.loads(pytorch_file(torch(rank), rank, len(RANKS)))
    reported["deviceProperties"][0]["name"] = NAMES[rank]
    return json.dumps(reported).encode()


def folder(root: Path, copies: set[int], merge: str = "node0.json") -> Path:
    """Write a folder; `copies` are the ranks whose events of PyTorch Composer has copied."""
    own = [
        [
            *cycle(BATCHES, rank=rank, start=start(rank), sync=EPOCH + MEETING + AHEAD * rank),
            *(copy_events(torch(rank), rank) if rank in copies else ()),
        ]
        for rank in RANKS
    ]
    put(
        root,
        (f"job/traces/{merge}", content(merge_ranks(*own))),
        *((f"job/torch_traces/rank{rank}.2.pt.trace.json", write_rank(rank)) for rank in RANKS),
    )
    return root


def parts(session: Session) -> Any:
    """Return for each rank what its overview says of its devices, its job and its steps."""
    found = {}
    for rank in RANKS:
        overview = answer(session, "overview", run="job/traces", worker=f"node0/rank{rank}")
        reported = overview["configuration"]
        found[rank] = (
            [(device["kind"], device["name"]) for device in overview["devices"]],
            (reported["rank"], reported["world_size"], reported["backend"]),
            [step["categories"]["kernel"] for step in overview["steps"]],
            overview["trace_start_ns"],
        )
    return found


@pytest.mark.parametrize("copies", [{0, 1, 2}, set(), {1}], ids=["copied", "none copied", "one copied"])
def test_each_rank_of_a_merged_file_has_its_own_device_and_job(tmp_path: Path, copies: set[int]) -> None:
    with open_(folder(tmp_path, copies)) as session:
        assert workers(session) == {"job/traces": [("node0", None, 1)]}
        found = parts(session)
        assert workers(session)["job/traces"] == [("node0", None, 1)]
        (run,) = session.catalog.runs
        assert [(each.name, each.rank) for each in session.workers(run)] == [
            (f"node0/rank{rank}", rank) for rank in RANKS
        ]
    for rank in RANKS:
        devices, job, kernels, began = found[rank]
        assert devices == [("CUDA", NAMES[rank])]
        assert job == (rank, len(RANKS), "nccl")
        assert kernels == [1000 * (12 + rank), 0]
        assert began - found[0][3] == 1000 * LATE * rank


def test_added_events_are_placed_like_merged_copies(tmp_path: Path) -> None:
    found = []
    for number, copies in enumerate((set(RANKS), set[int]())):
        with open_(folder(tmp_path / str(number), copies)) as session:
            views = [
                answer(session, view, run="job/traces", worker=f"node0/rank{rank}")
                for rank in RANKS
                for view in ("operators", "kernels")
            ]
            timelines = [
                lanes(answer(session, "trace", run="job/traces", worker=f"node0/rank{rank}")) for rank in RANKS
            ]
        found.append(([each["rows"] for each in views], timelines))
    assert found[0] == found[1]
    assert [[row["total_ns"] for row in rows] for rows in found[0][0][1::2]] == [[12_000], [13_000], [14_000]]


def test_ranks_of_a_merged_file_are_one_job(tmp_path: Path) -> None:
    with open_(folder(tmp_path, {0})) as session:
        found = answer(session, "distributed", run="job/traces", worker="node0/rank0")
    assert [(each["rank"], each["world_size"]) for each in found["ranks"]] == [(rank, 3) for rank in RANKS]


def test_a_later_merge_of_all_nodes_is_joined_the_same(tmp_path: Path) -> None:
    with open_(folder(tmp_path, {0, 1, 2}, "merged_trace.json")) as session:
        overview = answer(session, "overview", run="job/traces", worker="merged/rank2")
    assert [device["name"] for device in overview["devices"]] == [NAMES[2]]


OTHERS = (8, 9)


def two_nodes(root: Path, others: tuple[int, ...] = OTHERS) -> Path:
    """Return a second node whose events of PyTorch are in PyTorch's files alone."""
    folder(root, set(RANKS))
    cycles = [cycle(BATCHES, rank=rank, start=start(0)) for rank in others]
    put(root, ("job/traces/node1.json", content(merge_ranks(*cycles))))
    for rank in others:
        own = pytorch_file(pytorch_events(start=start(0), kernel=12 + rank), rank, 10)
        put(root, (f"job/torch_traces/rank{rank}.2.pt.trace.json", own))
    return root


def test_each_of_several_merged_files_takes_the_files_of_its_ranks(tmp_path: Path) -> None:
    with open_(two_nodes(tmp_path)) as session:
        assert workers(session) == {"job/traces": [("node0", None, 1), ("node1", None, 1)]}
        found = parts(session)
        others = [answer(session, "overview", run="job/traces", worker=f"node1/rank{rank}") for rank in OTHERS]
        notes = [each for each in others[0]["health"] if each["kind"] == "rank_not_merged"]
    for rank in RANKS:
        assert (found[rank][0], found[rank][2]) == ([("CUDA", NAMES[rank])], [1000 * (12 + rank), 0])
    for rank, overview in zip(OTHERS, others, strict=True):
        assert overview["configuration"]["rank"] == rank
        assert [step["categories"]["kernel"] for step in overview["steps"]] == [1000 * (12 + rank), 0]
    assert [(note["severity"], note["count"]) for note in notes] == [("info", len(RANKS))]


def test_nodes_that_are_merged_once_more_count_once(tmp_path: Path) -> None:
    cycles = [cycle(BATCHES, rank=rank, start=start(0)) for rank in (*RANKS, *OTHERS)]
    put(two_nodes(tmp_path), ("job/traces/merged_trace.json", content(merge_ranks(*cycles))))
    with open_(tmp_path) as session:
        assert workers(session) == {"job/traces": [("node0", None, 1), ("node1", None, 1)]}
        kernels = [
            [
                step["categories"]["kernel"]
                for step in answer(session, "overview", run="job/traces", worker=name)["steps"]
            ]
            for name in ("node0/rank0", "node1/rank8")
        ]
        job = answer(session, "distributed", run="job/traces", worker="node0/rank0")
    assert kernels == [[12_000, 0], [20_000, 0]]
    assert [each["rank"] for each in job["ranks"]] == [*RANKS, *OTHERS]
    assert "duplicate_rank" not in {each["kind"] for each in job["problems"]}


def test_a_node_that_is_merged_again_is_listed_once(tmp_path: Path) -> None:
    stranger = pytorch_file(pytorch_events(), 20, 30)
    put(
        folder(tmp_path, set(RANKS)),
        ("job/traces/merged_trace.json", content(merge_ranks(cycle(BATCHES)))),
        ("job/torch_traces/rank20.2.pt.trace.json", stranger),
    )
    with open_(tmp_path) as session:
        overview = answer(session, "overview", run="job/traces", worker="node0/rank0")
    notes = [each for each in overview["health"] if each["kind"] == "rank_not_merged"]
    assert [(note["severity"], note["count"]) for note in notes] == [("info", 1)]


def test_a_node_of_one_rank_takes_the_file_of_that_rank(tmp_path: Path) -> None:
    with open_(two_nodes(tmp_path, (8,))) as session:
        assert workers(session) == {"job/traces": [("node0", None, 1), ("node1", None, 1)]}
        overview = answer(session, "overview", run="job/traces", worker="node1")
    assert [step["categories"]["kernel"] for step in overview["steps"]] == [20_000, 0]
    assert overview["configuration"]["rank"] == 8


def test_a_merged_file_beside_files_of_single_ranks_takes_no_companions(tmp_path: Path) -> None:
    root = folder(tmp_path, {0, 1, 2})
    put(root, ("job/traces/ep0-ba2-rank0.json", files(0, copy=True)[0]))
    with open_(root) as session:
        assert workers(session) == {
            "job/torch_traces": [("rank1", 1, 1), ("rank2", 2, 1)],
            "job/traces": [("rank0", 0, 1)],
        }


def test_a_rank_missing_from_the_merged_file_is_noted(tmp_path: Path) -> None:
    root = folder(tmp_path, {0, 1})
    put(root, ("job/torch_traces/rank7.2.pt.trace.json", pytorch_file(torch(0), 7, 8)))
    with open_(root) as session:
        found = parts(session)
        health = answer(session, "overview", run="job/traces", worker="node0/rank1")["health"]
        own = answer(session, "overview", run="job/traces", worker="torch_traces/rank7")
        job = answer(session, "distributed", run="job/traces", worker="node0/rank0")
    assert [found[rank][0] for rank in RANKS] == [[("CUDA", NAMES[rank])] for rank in RANKS]
    (note,) = [each for each in health if each["kind"] == "rank_not_merged"]
    assert (note["severity"], note["count"]) == ("info", 1)
    assert HealthNote(**note).message.endswith("; they are workers of their own")
    assert own["configuration"]["rank"] == 7
    assert [each["worker"] for each in job["ranks"]] == [
        *(f"node0/rank{rank}" for rank in RANKS),
        "torch_traces/rank7",
    ]


def test_a_rank_in_no_merged_file_becomes_a_worker_once_all_are_read(tmp_path: Path) -> None:
    put(
        two_nodes(tmp_path),
        *((f"job/torch_traces/rank20.{batch}.pt.trace.json", write_rank(0)) for batch in (10, 9)),
    )
    with open_(tmp_path) as session:
        (run,) = session.catalog.runs
        answer(session, "overview", run="job/traces", worker="node0/rank0")
        before = [worker.name for worker in session.workers(run)]
        answer(session, "overview", run="job/traces", worker="node1/rank8")
        after = session.workers(run)
        job = answer(session, "distributed", run="job/traces", worker="node0/rank0")
    assert "torch_traces/rank20" not in before
    assert [(worker.rank, [span.label for span in worker.spans]) for worker in after][-1] == (20, ["9", "10"])
    assert len(after) == len(RANKS) + len(OTHERS) + 1
    assert len({worker.name for worker in after}) == len(after) == len(job["ranks"])


def test_pytorch_files_are_workers_if_the_merged_file_is_unreadable(tmp_path: Path) -> None:
    root = folder(tmp_path, {0})
    (root / "job/traces/node0.json").write_bytes(b"no JSON")
    with open_(root) as session:
        (run,) = session.catalog.runs
        (broken,) = run.workers
        session.wait(session.load(broken.spans[0]))
        names = [worker.name for worker in session.workers(run)]
        devices = answer(session, "overview", run="job/traces", worker="torch_traces/rank1")["devices"]
    assert names == ["node0", *(f"torch_traces/rank{rank}" for rank in RANKS)]
    assert [device["name"] for device in devices] == [NAMES[1]]


def test_a_second_window_of_a_rank_adds_its_events(tmp_path: Path) -> None:
    root = folder(tmp_path, set())
    later = pytorch_events(start=start(1) + 100, kernel=5)
    for each in later[1:]:
        each["args"]["correlation"] = 9  # the driver counts on
    put(root, ("job/torch_traces/rank1.4.pt.trace.json", pytorch_file(later, 1, len(RANKS))))
    with open_(root) as session:
        found = parts(session)
    assert [found[rank][2] for rank in RANKS] == [[12_000, 0], [13_000, 5_000], [14_000, 0]]
    assert found[1][0] == [("CUDA", NAMES[1])]


def test_a_rewritten_companion_file_is_read_again(tmp_path: Path) -> None:
    root = folder(tmp_path, {0, 1, 2})
    with open_(root) as session:
        before = parts(session)
        other = json.loads(write_rank(2))
        other["deviceProperties"][0]["name"] = "NVIDIA H200"
        put(root, ("job/torch_traces/rank2.2.pt.trace.json", json.dumps(other).encode()))
        session.scan()
        after = parts(session)
    assert [before[rank][0] == after[rank][0] for rank in RANKS] == [True, True, False]
    assert after[2][0] == [("CUDA", "NVIDIA H200")]
