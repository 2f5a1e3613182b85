"""Where the hits of a search are drawn."""

from __future__ import annotations

import pytest

from tests.support.traces import draw
from torch_tb_profiler.analyses.timeline import search as module
from torch_tb_profiler.analyses.timeline.search import find_hits, hit_places

PICTURE = """
host   cpu_op  aten::linear   0  100
host   cpu_op  aten::mm      10   20
host   cpu_op  aten::t       32    3
host   cpu_op  aten::mm      40   20
host2  cpu_op  aten::mm      50   10
"""


def found(query: str, begin: int = 0, end: int = 100, resolution: int = 1) -> list[tuple[int, ...]]:
    """Track, depth, begin and end of each place, us."""
    trace = draw(PICTURE)
    rows = find_hits(trace, query, regex=False).rows
    at = hit_places(trace, rows, 1000 * begin, 1000 * end, 1000 * resolution, python=False)
    return [
        (track, depth, start // 1000, stop // 1000)
        for track, depth, start, stop in zip(
            at.track.tolist(), at.depth.tolist(), at.begin.tolist(), at.end.tolist(), strict=True
        )
    ]


def test_hits_have_their_own_lane_not_that_of_what_is_around_them() -> None:
    assert found("mm") == [(0, 1, 10, 30), (0, 1, 40, 60), (1, 0, 50, 60)]
    assert found("linear") == [(0, 0, 0, 100)]


def test_hits_whose_gap_cannot_be_seen_are_one_place_of_their_lane() -> None:
    assert found("mm", resolution=10)[:2] == [(0, 1, 10, 30), (0, 1, 40, 60)]
    assert found("mm", resolution=11) == [(0, 1, 10, 60), (1, 0, 50, 60)]


def test_only_hits_that_touch_the_window_count() -> None:
    assert found("mm", 31, 45) == [(0, 1, 40, 60)]
    assert found("mm", 61, 99) == []
    assert found("nothing") == []


def test_more_hits_than_can_travel_are_shown_coarser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PLACES", 2)
    assert found("mm") == [(0, 1, 10, 60), (1, 0, 50, 60)]
    monkeypatch.setattr(module, "MAX_PLACES", 1)  # as many lanes there are, at least
    assert found("mm") == [(0, 1, 10, 60), (1, 0, 50, 60)]
