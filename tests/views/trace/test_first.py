"""What the page asks a timeline before anybody moves it."""

from __future__ import annotations

from math import ceil, floor, log2
from typing import Any

import pytest

from tests.support.traces import draw
from torch_tb_profiler.views import find_view
from torch_tb_profiler.views.trace.payload import TimeWindow, first_tiles, first_window


def request_as_page(begin: int, end: int, width: int) -> set[TimeWindow]:
    """Compute the request as the page does (fe/src/timeline), in floating point too."""
    air = max((end - begin) * 0.02, 50)
    per_pixel = (ceil(end + air) - floor(begin - air)) / width
    length = 1024 * 2 ** max(0, floor(log2(max(per_pixel, 1))))
    return {
        TimeWindow(i * length, (i + 1) * length) for i in range(floor(begin / length), floor(end / length) + 1)
    }


@pytest.mark.parametrize("end_us", [1, 7, 1000, 12_345, 98_765_432])
def test_the_tiles_are_those_of_pages_of_all_widths(end_us: int) -> None:
    trace = draw(f"host cpu_op aten::mm 0 {end_us}")
    made, end = first_tiles(trace), 1000 * end_us
    for width in (480, 700, 940, 1180, 1500, 2200):
        assert request_as_page(0, end, width) <= {*made}, width
    assert len(made) == len({*made}) <= 20
    assert first_window(trace) == (-max(end // 50, 50), end + max(end // 50, 50))


def test_a_mark_far_behind_the_slices_is_not_in_the_first_window() -> None:
    mark = {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 90_000}
    trace = draw("host cpu_op aten::mm 0 1000", mark)
    assert first_window(trace) == (-20_000, 1_020_000)
    assert max(window.begin for window in first_tiles(trace)) < 1_020_000


def test_a_trace_without_a_device_has_no_first_tiles_of_its_time() -> None:
    view: Any = find_view("trace/blame")
    assert not view.first(draw("host cpu_op aten::mm 0 10"))
    assert view.first(draw("host user_annotation ProfilerStep#1 0 90\ngpu kernel mm 10 20"))
