"""What a process maps instead of computing it: answers from cached columns are those from the trace."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tests.support.traces import draw
from tests.support.views import ask
from tests.views.trace.pictures import WAITING
from torch_tb_profiler.analyses.idle import device_time
from torch_tb_profiler.analyses.timeline import counters
from torch_tb_profiler.analyses.tracks import lanes as layout
from torch_tb_profiler.cache.arrow import read_columns_file, write_columns
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import TraceView
from torch_tb_profiler.views import all_views

CACHING_VIEWS: list[TraceView[Any, Any]] = [
    view for view in all_views() if isinstance(view, TraceView) and view.columns is not None
]


def test_the_timeline_caches_what_a_zoom_needs() -> None:
    assert [view.slug for view in CACHING_VIEWS] == ["trace/tile", "trace/counters", "trace/blame"]


@pytest.mark.parametrize("picture", [WAITING, "host cpu_op aten::mm 0 10"], ids=["device", "host"])
@pytest.mark.parametrize("view", CACHING_VIEWS, ids=lambda view: view.slug)
def test_an_answer_from_columns_is_the_answer_from_the_trace(
    view: TraceView[Any, Any], picture: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace, again = draw(picture), draw(picture)
    restore(view, trace, again, str(tmp_path / "columns.arrow"))
    windows = ((0, 200_000, 64), (70_000, 130_000, 640), (100_000, 500_000, 9))
    expected = [ask(trace, view.slug, begin=begin, end=end, width=width) for begin, end, width in windows]
    for module, derives in (
        (device_time, "idle_segments"),
        (counters, "_build_device_series"),
        (layout, "_build_lane_order"),
    ):
        monkeypatch.setattr(module, derives, lambda *_: pytest.fail("it was derived again"))
    assert [ask(again, view.slug, begin=b, end=e, width=w) for b, e, w in windows] == expected


def restore(view: TraceView[Any, Any], trace: Trace, again: Trace, path: str) -> None:
    """Restore a trace as the server does, through a file."""
    assert view.columns is not None
    with open(path, "wb") as file:
        write_columns(view.columns.of(trace), file)
    with pa.memory_map(path) as content:
        view.columns.restore(again, read_columns_file(content.read_buffer()))


def test_cached_counters_are_complete(tmp_path: Any) -> None:
    trace, again = draw(WAITING), draw(WAITING)
    restore(
        next(view for view in CACHING_VIEWS if view.slug == "trace/counters"), trace, again, str(tmp_path / "c")
    )
    for one, other in zip(counters.all_series(trace), counters.all_series(again), strict=True):
        assert (one.role, one.name, one.group, one.device, one.unit) == (
            other.role,
            other.name,
            other.group,
            other.device,
            other.unit,
        )
        assert one.times.tolist() == other.times.tolist() and one.values.tolist() == other.values.tolist()
        assert one.times.dtype == other.times.dtype and one.values.dtype == other.values.dtype
