"""The Overlap tab: its sentences and figures are those of the iterations."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tests.support.producers.aorta import Busy, active, iteration, line, write
from tests.support.traces import read_bytes
from tests.support.waiting import PATIENCE
from torch_tb_profiler.analyses.overlap.summary import RankOverlap, summarize_overlap
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.session import Root, Session
from torch_tb_profiler.view import Member, Members
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.overlap.build import build
from torch_tb_profiler.views.overlap.payload import OverlapParams


def join_text(parts: Sequence[Mapping[str, Any]]) -> str:
    return "".join(part["text"] for part in parts)


def overlap(folder: Path, ranks: Sequence[Sequence[Sequence[Busy]]], **params: str) -> dict[str, Any]:
    """Return the payload of a job: by rank and iteration, its ranges."""
    for rank, iterations in enumerate(ranks):
        lines = [line(step, ranges, 500, rank=rank) for step, ranges in enumerate(iterations)]
        write(folder / "run", rank, lines)
    with Session([Root(str(folder))], Settings(cache_bytes=0)) as session:
        session.scan()
        answer = session.view("overlap", params=params, wait=True, timeout=PATIENCE)
        assert answer.payload is not None
        payload: dict[str, Any] = json.loads(answer.payload)
    return payload


def test_the_headline_is_the_exposed_communication(tmp_path: Path) -> None:
    payload = overlap(tmp_path, [[iteration(0)] * 2, [iteration(6)] * 2])
    # Neither range of 0: gathers 25..40, all-reduce 300..340, reduce-scatter 140..150 and 300..350: 75 µs;
    # of 6: 25..40, 300..358, 146..150, so 15 + 58 + 4 = 77 µs.
    assert join_text(payload["headline"]) == (
        "Exposed communication takes 76.0 µs of an average iteration (15.2%), most of it in reduce-scatter."
    )
    assert payload["headline"][1]["link"] == "trace?worker=rank1&span=1&at=0-500000"
    assert "rank1 has the most exposed communication: 77.0 µs per iteration." in join_text(payload["details"])
    assert [row["exposed_ns"] for row in payload["ranks"]] == [75_000, 77_000]


def test_unread_ranks_are_counted_and_no_rank_has_the_most_yet(tmp_path: Path) -> None:
    """The slowest may come last: 75 µs of one rank are not the job's 76."""
    write(tmp_path, 0, [line(0, iteration(0), 500, rank=0)])
    write(tmp_path, 1, [line(0, iteration(6), 500, rank=1)])
    read = [
        Member(f"rank{rank}", rank, "1", "ready", None, summarize_overlap(read_bytes(file.read_bytes())))
        for rank, file in enumerate(sorted(tmp_path.iterdir()))
    ]
    waits = replace(read[1], state="loading", result=None)

    def built(*members: Member[RankOverlap]) -> tuple[str, str, str]:
        payload = build(Members(list(members)), OverlapParams())
        return plain(payload.headline), plain(payload.details), plain(payload.reading)

    headline, details, reading = built(read[0], waits)
    assert headline.endswith("in reduce-scatter in the ranks read so far.") and " takes 75.0 µs of" in headline
    assert details.endswith("Means over 1 iteration of 1 rank.")
    assert reading == "1 of 2 traces is still being read"
    _, details, _ = built(*read, replace(waits, worker="rank2"))
    assert "has the most" not in details
    headline, details, reading = built(*read)
    assert headline.endswith(" most of it in reduce-scatter.") and " takes 76.0 µs of" in headline
    assert "rank1 has the most" in details and reading == ""


def test_a_rank_has_the_means_of_its_iterations(tmp_path: Path) -> None:
    payload = overlap(tmp_path, [[iteration(0), iteration(3)]])
    (row,) = payload["ranks"]
    busy = [iteration(0), iteration(3)]
    compute = [active(each, "compute") for each in busy]
    reduced = [active(each, "allreduce", "reducescatter") for each in busy]
    both = sum(len(a & b) for a, b in zip(compute, reduced, strict=True))
    assert row["overlap_ns"] == 1000 * both / 2
    assert row["overlap_ratio"] == both / sum(map(len, compute))
    assert row["idle_ns"] == 1000 * sum(500 - len(active(each)) for each in busy) / 2
    assert row["iterations"] == 2


def test_communication_that_overlaps_entirely_is_reported_so(tmp_path: Path) -> None:
    payload = overlap(tmp_path, [[[Busy("compute", 0, 100), Busy("allreduce", 20, 80)]]])
    assert join_text(payload["headline"]) == "All communication overlaps with computation."
    assert payload["ranks"][0]["hidden_ratio"] == 1


def test_iterations_without_collectives_say_so(tmp_path: Path) -> None:
    payload = overlap(tmp_path, [[[Busy("compute", 0, 100), Busy("aux", 100, 120)]]])
    assert join_text(payload["headline"]) == "No collective was recorded on a stream."
    assert payload["ranks"][0]["hidden_ratio"] is None


def test_maps_have_a_row_per_rank_and_at_most_the_columns_asked_for(tmp_path: Path) -> None:
    payload = overlap(tmp_path, [[iteration(0)] * 5, [iteration(1)] * 3], columns="2")
    assert payload["steps"] == ["0–2", "3–4"]
    maps = {each["name"]: each["values"] for each in payload["maps"]}
    assert maps["compute"] == [[250_000, 250_000], [251_000, None]]
    assert payload["links"][1] == ["trace?worker=rank1&span=1&at=0-500000", None]


def test_what_differs_from_the_record_has_its_reason(tmp_path: Path) -> None:
    folded = [Busy("compute", 0, 30), Busy("compute", 20, 60)]
    payload = overlap(tmp_path, [[folded, iteration(0)]])
    rows = {row["name"]: row for row in payload["recorded"]}
    assert rows["Stream compute"]["iterations"] == 1
    assert rows["Stream compute"]["reason"] == (
        "two ranges of one stream run at once or touch, and the recorder ends both with the first"
    )
    assert rows["Stream allreduce"]["reason"] is None
    assert join_text(payload["recorded_headline"]) == (
        "2 of 8 recorded totals differ from the ranges: stream compute and idle before the last range."
    )


def test_a_rank_that_cannot_be_read_is_left_out_with_its_reason(tmp_path: Path) -> None:
    broken = write(tmp_path / "run", 1, [line(0, iteration(0), 500, rank=1)])
    broken.write_text(broken.read_text("utf-8").replace('"total_ms": 0.5', '"total_ms": NaN'), encoding="utf-8")
    payload = overlap(tmp_path, [[iteration(0)]])
    assert payload["workers"] == ["rank0"]
    assert [(row["worker"], row["state"], row["exposed_ns"]) for row in payload["ranks"]] == [
        ("rank0", "ready", 75_000),
        ("rank1", "failed", None),
    ]
    assert payload["ranks"][1]["reason"] == "the file has no iterations"


def test_metrics_stand_beside_overlap_on_the_axis_of_the_steps(tmp_path: Path) -> None:
    """Two steps share a column; a loss that is no number is left out, and so is a metric without values."""
    for rank in (0, 1):
        more = [{"loss": float("nan")} if step == 3 else {"loss": 1.0 + step + rank} for step in range(4)]
        lines = [line(step, iteration(0), 500, rank=rank, **more[step]) for step in range(4)]
        write(tmp_path / "run", rank, lines)
    payload = overlap(tmp_path, [], columns="2")
    series = {each["name"]: each for each in payload["series"]}
    assert payload["steps"] == ["0–1", "2–3"]
    assert series["loss"]["values"] == [2.0, 3.5]
    assert series["lr"]["values"] == [0.001, 0.001]
    ranges = iteration(0)
    ratio = len(active(ranges, "compute") & active(ranges, "allreduce", "reducescatter")) / len(
        active(ranges, "compute")
    )
    assert [round(value, 12) for value in series["overlap_ratio"]["values"]] == [round(ratio, 12)] * 2
    assert series["exposed"]["values"] == [75_000, 75_000]
    assert "grad_norm" not in series and "clock" not in series
