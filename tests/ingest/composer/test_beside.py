"""Composer's files with PyTorch's own beside them: one worker per rank, which knows its devices and its job."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.ingest.composer.test_folder import answer, open_, put
from tests.support.producers.composer import (
    EPOCH,
    LOOP,
    Batch,
    content,
    copy_events,
    cycle,
    pytorch_events,
    pytorch_file,
)
from torch_tb_profiler.session import Session

BATCHES = [Batch(60, 20, 15, 40)] * 2
LATE, AHEAD = 30, 5_000_000
"""µs: rank 1 begins later, and its clock is ahead."""

MEETING = -100
"""µs from rank 0's start: when all ranks meet."""


def files(rank: int, *, copy: bool) -> tuple[bytes, bytes]:
    """Return the files of a rank: Composer's, with or without the copy of PyTorch's events, and PyTorch's."""
    start = EPOCH + (LATE + AHEAD) * rank
    torch = pytorch_events(start=start)
    own = cycle(BATCHES, rank=rank, start=start, sync=EPOCH + MEETING + AHEAD * rank)
    return content([*own, *(copy_events(torch, rank) if copy else ())]), pytorch_file(torch, rank)


def folder(root: Path, *, copy: bool = True) -> Path:
    for rank in (0, 1):
        own, torch = files(rank, copy=copy)
        put(
            root,
            (f"job/traces/ep0-ba2-rank{rank}.json", own),
            (f"job/torch_traces/rank{rank}.2.pt.trace.json.gz", gzip.compress(torch)),
        )
    return root


def workers(session: Session) -> dict[str, list[tuple[str, int | None, int]]]:
    return {
        run.name: [(worker.name, worker.rank, len(worker.spans)) for worker in run.workers]
        for run in session.catalog.runs
    }


def step_times(overview: Any) -> Any:
    return {key: overview[key] for key in ("steps", "average", "trace_start_ns", "headline")}


def lanes(timeline: Any) -> list[tuple[str, str, int]]:
    return [(track["name"], track["role"], track["slices"]) for track in timeline["tracks"]]


@pytest.mark.parametrize("copy", [True, False])
def test_a_rank_is_one_worker_with_its_device(tmp_path: Path, copy: bool) -> None:
    with open_(folder(tmp_path, copy=copy)) as session:
        assert workers(session) == {"job/traces": [("rank0", 0, 1), ("rank1", 1, 1)]}
        for rank in (0, 1):
            overview = answer(session, "overview", worker=f"rank{rank}")
            (device,) = overview["devices"]
            assert (device["name"], device["memory_bytes"]) == ("NVIDIA A100-SXM4-80GB", 85_000_000_000)
            # Both batches are steps; the kernel of 12 µs runs in the first.
            assert [step["categories"]["kernel"] for step in overview["steps"]] == [12_000, 0]
            assert [step["categories"]["dataloader"] for step in overview["steps"]] == [60_000, 60_000]
        operators = answer(session, "operators", worker="rank1")["rows"]
        assert [(row["name"], row["host_total_ns"], row["device_total_ns"]) for row in operators] == [
            ("aten::mm", 10_000, 12_000)
        ]


def test_events_are_the_same_from_either_file_and_never_doubled(tmp_path: Path) -> None:
    with open_(folder(tmp_path / "a")) as session:
        once = answer(session, "overview"), answer(session, "trace")
    with open_(folder(tmp_path / "b", copy=False)) as session:
        again = answer(session, "overview"), answer(session, "trace")
    assert step_times(once[0]) == step_times(again[0])
    found = [lanes(trace) for _, trace in (once, again)]
    assert found[0] == found[1]
    assert sum(slices for _, _, slices in found[0]) == 5 * len(BATCHES) + 3
    assert ("Trainer", "trainer", 5 * len(BATCHES)) in found[0]


@pytest.mark.parametrize("copy", [True, False])
def test_ranks_are_aligned_at_the_time_they_all_met(tmp_path: Path, copy: bool) -> None:
    with open_(folder(tmp_path, copy=copy)) as session:
        ranks = answer(session, "distributed")["ranks"]
    first, second = (each["clock"] for each in ranks)
    assert (first["method"], second["method"]) == ("reference", "clock_sync")
    assert second["offset_ns"] == -1000 * AHEAD
    assert second["residual_ns"] == 14_000  # both note an error of 7 µs
    assert [each["recording_start_ns"] for each in ranks] == [0, 1000 * LATE]


def test_without_pytorch_files_the_device_has_no_name(tmp_path: Path) -> None:
    with open_(folder(tmp_path) / "job" / "traces") as session:
        (device,) = answer(session, "overview")["devices"]
    assert device["name"] is None


def test_another_window_or_rank_is_a_separate_trace(tmp_path: Path) -> None:
    root = folder(tmp_path)
    put(root, ("job/torch_traces/rank0.4.pt.trace.json", pytorch_file(pytorch_events(), 0)))
    with open_(root) as session:
        assert workers(session) == {
            "job/torch_traces": [("rank0", 0, 1)],
            "job/traces": [("rank0", 0, 1), ("rank1", 1, 1)],
        }


def test_a_rewritten_companion_file_is_read_again(tmp_path: Path) -> None:
    root = folder(tmp_path)
    with open_(root) as session:
        before = answer(session, "overview")["devices"][0]["name"]
        other = json.loads(files(0, copy=True)[1])
        other["deviceProperties"][0]["name"] = "NVIDIA H100"
        put(root, ("job/torch_traces/rank0.2.pt.trace.json.gz", gzip.compress(json.dumps(other).encode())))
        session.scan()
        after = answer(session, "overview")["devices"][0]["name"]
    assert (before, after) == ("NVIDIA A100-SXM4-80GB", "NVIDIA H100")


def test_the_trainer_runs_on_the_main_thread_of_pytorch(tmp_path: Path) -> None:
    with open_(folder(tmp_path, copy=False)) as session:
        timeline = answer(session, "trace", worker="rank1")
    threads = {track["role"]: track["thread"] for track in timeline["tracks"]}
    assert threads["trainer"] == threads["main"] == f"1/{LOOP}"
