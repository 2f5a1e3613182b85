"""Snapshots of the ranks of one job: a row each, and the rank that differs only where one does."""

from __future__ import annotations

from typing import Any

import pytest

from tests.views.memory.test_snapshot_compare import EMBEDDING, peaking
from tests.views.memory.test_snapshot_failures import FORWARD, MIB, STEP
from torch_tb_profiler.analyses.memory.snapshot.ranks import SnapshotDigest
from torch_tb_profiler.ingest.memory.snapshot import as_trace
from torch_tb_profiler.model.snapshots import RecordedSnapshot
from torch_tb_profiler.session.cache.packed import pack, unpack
from torch_tb_profiler.view import Member, Members, NoParams
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.memory.snapshot.ranks import RANKS, SnapshotRanks, build_ranks


def ranks(*snapshots: RecordedSnapshot | None) -> SnapshotRanks:
    members: list[Member[SnapshotDigest]] = []
    for rank, snapshot in enumerate(snapshots):
        if snapshot is None:
            members.append(Member(f"rank{rank}", rank, "1", "failed", "refused: the pickle calls an object", None))
            continue
        digest = RANKS.reduction.reduce(as_trace(snapshot))
        digest = unpack(pack(digest), RANKS.reduction.type)  # as it comes from the cache
        members.append(Member(f"rank{rank}", rank, "1", "ready", None, digest))
    return build_ranks(Members(members), NoParams())


def rank(*more: tuple[int, list[Any]], **options: Any) -> RecordedSnapshot:
    return peaking((100, STEP), (40, FORWARD), *more, **options)


def test_a_rank_that_holds_more_is_named_with_the_site() -> None:
    found = ranks(rank(), rank(), rank((21, EMBEDDING)), rank())
    assert found.different == 2
    assert plain(found.headline) == (
        "Rank 2 differs most: its peak of 161 MiB is 21.0 MiB above the median of the others; 21.0 MiB of the "
        "difference is from /home/a/lib/site-packages/models/embedding.py(40): embedding."
    )
    assert [row.difference_bytes for row in found.rows] == [0, 0, 21 * MIB, 0]
    assert all(sum(row.categories.values()) == row.peak_bytes for row in found.rows)
    assert found.categories == ["optimizer state", "activations", "unknown"]
    assert {name: size // MIB for name, size in found.rows[2].categories.items()} == {
        "optimizer state": 100, "activations": 40, "unknown": 21
    }  # fmt: skip


def test_a_rank_that_holds_less_is_named_too() -> None:
    found = ranks(rank(), rank(), peaking((100, STEP)))
    assert found.different == 2 and "40.0 MiB below the median" in plain(found.headline)
    assert "model/block.py(88): forward" in plain(found.headline)


@pytest.mark.parametrize("more", [0, 1])
def test_ranks_within_a_hundredth_are_alike(more: int) -> None:
    found = ranks(rank(), rank(*([(more, EMBEDDING)] if more else [])), rank())
    assert found.different is None and plain(found.headline).startswith("All 3 ranks peak within 1% of each other")
    assert ranks(rank(), rank((2, EMBEDDING)), rank()).different == 1
    assert plain(ranks(rank(), rank()).headline).startswith("Both ranks peak within 1% of each other")


def test_what_has_no_row_says_why() -> None:
    found = ranks(rank(), None)
    assert [row.worker for row in found.rows] == ["rank0"] and found.rows[0].difference_bytes is None
    assert "refused" in plain(found.reasons["rank1"])
    assert plain(found.headline) == "Rank 0 is the only one that was read; its peak is 140 MiB."
    assert plain(ranks(rank()).headline) == "Only one snapshot was found, with a peak of 140 MiB."
    assert plain(ranks(None).headline) == "No snapshot has been read yet."


def test_nothing_is_said_of_ranks_that_were_not_read() -> None:
    found = ranks(rank(), rank(), None)
    assert plain(found.headline).startswith("The 2 ranks that were read peak within 1% of each other")
    found = ranks(rank(), rank(), peaking((100, STEP)), None)
    assert plain(found.headline).startswith("Rank 2 differs most of the 3 that were read: its peak")


def test_failures_and_reserved_bytes_are_of_each_rank() -> None:
    found = ranks(rank(), rank(oom=5))
    assert [(row.out_of_memory, row.reserved_bytes, row.leaked_bytes) for row in found.rows] == [
        (0, 400 * MIB, None), (1, 400 * MIB, None)
    ]  # fmt: skip
