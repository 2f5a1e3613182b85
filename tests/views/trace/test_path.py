"""The critical path on the timeline: what is lit."""

from __future__ import annotations

import pytest

from tests.support.traces import BUSY_HOST, draw
from tests.support.views import ask
from torch_tb_profiler.analyses.critical_path.slices import path_slices_between
from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.model.trace import Trace


def highlighted(trace: Trace, begin: int = 0, end: int = 600_000) -> list[tuple[str, int, int]]:
    """Return (name, begin, end in us) of what the path passes through."""
    path = ask(trace, "trace/path", begin=begin, end=end)
    columns = zip(path["event"], path["begin_ns"], path["end_ns"], strict=True)
    return [(trace.strings[trace.events.name[row]], a // 1000, b // 1000) for row, a, b in columns]


def test_the_path_passes_through_the_launch_the_kernels_and_what_follows_the_wait() -> None:
    assert highlighted(draw(BUSY_HOST)) == [
        ("aten::mm", 0, 5),
        ("cudaLaunchKernel", 5, 15),
        ("gemm", 19, 219),
        ("gemm", 220, 500),
        ("aten::item", 502, 505),
        ("ProfilerStep#1", 505, 540),
        ("aten::mul", 540, 590),
        ("ProfilerStep#1", 590, 600),
    ]


def test_it_is_drawn_on_the_tracks_of_its_slices() -> None:
    trace = draw(BUSY_HOST)
    path = ask(trace, "trace/path", begin=0, end=600_000)
    tracks = {track["id"]: track["kind"] for track in ask(trace, "trace")["tracks"]}
    kernel = [tracks[track] == "stream" for track in path["track"]]
    assert kernel == [name == "gemm" for name, *_ in highlighted(trace)]


def test_a_window_has_what_touches_it() -> None:
    assert highlighted(draw(BUSY_HOST), 219_000, 500_000) == [("gemm", 220, 500)]


def test_device_work_is_lit_where_it_is_recorded_though_its_clock_is_moved() -> None:
    early = draw("""
    host  user_annotation  ProfilerStep#1      0  200
    host  cuda_runtime     cudaLaunchKernel   50   10  correlation=1
    gpu0  kernel           gemm               40  190  correlation=1
    """)
    assert ask(early, "critical_path/pieces")["clock_shift_ns"] > 0
    assert ("gemm", 40, 230) in highlighted(early)


def test_more_than_can_be_sent_are_joined_where_they_follow_on_a_track() -> None:
    trace = draw(BUSY_HOST)
    whole = path_slices_between(trace, 0, 600_000, max_slices=8)
    joined = path_slices_between(trace, 0, 600_000, max_slices=7)
    assert len(whole.row) == 8
    names = [trace.strings[trace.events.name[row]] for row in joined.row]
    assert names == ["cudaLaunchKernel", "gemm", "aten::mul"]
    assert (joined.begin // 1000).tolist() == [0, 19, 502]
    assert (joined.end // 1000).tolist() == [15, 500, 600]


def test_what_is_joined_spans_no_gap_that_one_could_see() -> None:
    trace = draw("host cpu_op a 0 10\nhost cpu_op b 300 10\nhost cpu_op c 310 20")
    joined = path_slices_between(trace, 0, 330_000, max_slices=2)
    assert (joined.begin // 1000).tolist() == [0, 300]
    assert (joined.end // 1000).tolist() == [10, 330]


def test_without_a_host_nothing_is_lit() -> None:
    assert highlighted(draw("gpu0 kernel a 0 10 stream=7")) == []


def test_a_window_holds_time() -> None:
    with pytest.raises(UsageError, match="begin must be less than end"):
        ask(draw(BUSY_HOST), "trace/path", begin=5, end=5)
