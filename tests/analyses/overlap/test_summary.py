"""Busy, overlapping and exposed time per iteration, against a count of microseconds."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.producers.aorta import STREAMS, Busy, active, iteration, line
from torch_tb_profiler.analyses.overlap.job import (
    OverlapColumns,
    build_heat_map,
    means_by_step,
    overlap_totals,
    recorded_differences,
)
from torch_tb_profiler.analyses.overlap.summary import summarize_overlap
from torch_tb_profiler.ingest import read_trace

GATHER = "all_gather_into_tensor"


def table(iterations: Sequence[Sequence[Busy]], total: int = 500, first: int = 0) -> OverlapColumns:
    lines = [line(first + step, ranges, total) for step, ranges in enumerate(iterations)]
    return summarize_overlap(read_trace(io.BytesIO("\n".join(map(json.dumps, lines)).encode()))).table()


busy = st.builds(
    lambda stream, start, length, function: Busy(
        stream, start, start + length, GATHER if function and stream == "aux" else None
    ),
    st.sampled_from(STREAMS),
    st.integers(0, 80),
    st.integers(0, 40),
    st.booleans(),
)


@given(st.lists(st.lists(busy, max_size=8), min_size=1, max_size=3))
def test_every_total_is_the_count_of_microseconds(iterations: list[list[Busy]]) -> None:
    found = table(iterations, 100)
    for at, ranges in enumerate(iterations):
        compute = active(ranges, "compute")
        reduced = {"allreduce": active(ranges, "allreduce"), "reducescatter": active(ranges, "reducescatter")}
        gathered = active(ranges, "aux", function=GATHER)
        every = reduced["allreduce"] | reduced["reducescatter"] | gathered
        expected = {
            "compute": compute,
            "overlap": compute & (reduced["allreduce"] | reduced["reducescatter"]),
            "hidden": compute & every,
            "exposed": every - compute,
            "idle": set(range(100)) - active(ranges),
        }
        for name, times in {**reduced, "allgather": gathered}.items():
            expected |= {name: times, f"{name}_overlap": times & compute, f"{name}_exposed": times - compute}
        assert {name: found[name][at] for name in expected} == {
            name: 1000 * len(times) for name, times in expected.items()
        }
        assert found["total"][at] == 100_000


def test_a_range_that_begins_before_its_iteration_counts_whole() -> None:
    found = table([[Busy("compute", 0, 10)], [Busy("compute", -20, 30), Busy("allreduce", -10, 5)]], 100)
    assert found["compute"].tolist() == [10_000, 50_000]
    assert found["overlap"].tolist() == [0, 15_000]


def test_what_was_recorded_is_what_the_ranges_give() -> None:
    found = recorded_differences([table([iteration(seed) for seed in range(5)])])
    assert [each.name for each in found] == [
        "stream allreduce",
        "stream aux",
        "stream compute",
        "stream reducescatter",
        "overlap",
        "allreduce_overlap",
        "reducescatter_overlap",
        "idle",
    ]
    assert all(each.iterations == 0 and each.recorded == pytest.approx(each.recomputed) for each in found)


def test_ranges_of_one_stream_that_overlap_are_recorded_too_short() -> None:
    """The recorder turns the stream off at 30 µs: it has 30 of the 60 µs."""
    found = table([[Busy("compute", 0, 30), Busy("compute", 20, 60)], [Busy("compute", 0, 30)]])
    assert found["folded"].tolist() == [1, 0]
    (compute,) = [each for each in recorded_differences([found]) if each.name == "stream compute"]
    assert (compute.recorded, compute.recomputed) == (30_000, 45_000)
    assert (compute.iterations, compute.most, compute.folded) == (1, 30_000, 1)


def test_ranges_of_one_stream_that_meet_are_recorded_as_the_first() -> None:
    """At 30 µs the recorder turns the stream on again, and then off."""
    found = table([[Busy("compute", 0, 30), Busy("compute", 30, 60), Busy("aux", 60, 70)]])
    (compute,) = [each for each in recorded_differences([found]) if each.name == "stream compute"]
    assert (compute.recorded, compute.recomputed, compute.folded) == (30_000, 60_000, 1)


def test_a_difference_without_such_ranges_has_no_known_reason() -> None:
    wrong = line(0, iteration(0), 500)
    wrong["profile"]["overlap"]["per_stream_ms"]["compute"] += 0.002
    found = recorded_differences([summarize_overlap(read_trace(io.BytesIO(json.dumps(wrong).encode()))).table()])
    assert [(each.name, each.folded) for each in found if each.iterations] == [("stream compute", 0)]


def test_what_is_closer_than_events_are_timed_does_not_differ() -> None:
    close = line(0, iteration(0), 500)
    close["profile"]["overlap"]["per_stream_ms"]["compute"] += 0.0009
    found = recorded_differences([summarize_overlap(read_trace(io.BytesIO(json.dumps(close).encode()))).table()])
    assert not any(each.iterations for each in found)


def test_totals_of_a_recorder_that_counted_nothing_are_recomputed() -> None:
    silent = line(0, iteration(0), 500)
    silent["profile"]["overlap"] = {}
    found = summarize_overlap(read_trace(io.BytesIO(json.dumps(silent).encode()))).table()
    assert recorded_differences([found]) == []
    assert overlap_totals([found]) == overlap_totals([table([iteration(0)])])


def test_the_totals_of_the_report_are_means_over_all_iterations() -> None:
    found = overlap_totals([table([iteration(0), iteration(2)]), table([iteration(4)], first=7)])
    overlap = [
        len(active(iteration(seed), "compute") & active(iteration(seed), "allreduce", "reducescatter"))
        for seed in (0, 2, 4)
    ]
    assert found.count == 3
    assert found.mean_overlap_ms == pytest.approx(sum(overlap) / 3 / 1000)
    assert found.mean_loss == pytest.approx((1 + 1 / 2 + 1 / 8) / 3)
    assert found.overlap_ratio == pytest.approx(found.mean_overlap_ms / found.mean_compute_ms)
    assert overlap_totals([]).count == 0 and overlap_totals([]).overlap_ratio == 0


def test_a_map_shares_columns_and_leads_to_the_worst_iteration() -> None:
    first, second = table([iteration(0), iteration(1), iteration(2)]), table([iteration(3)], first=2)
    found = build_heat_map([first, second], "allreduce", 2)
    assert found.steps == [(0, 1), (2, 2)]
    assert found.values == [[61_500, 66_000], [None, 69_000]]
    assert found.worst == [[1, 2], [None, 0]]


def test_a_series_is_the_mean_of_the_ranks_at_each_step() -> None:
    found = means_by_step([table([iteration(0), iteration(1)]), table([iteration(2)], first=1)], ("allreduce",))
    assert found == {"step": [0, 1], "allreduce": [60_000, 64_500]}
