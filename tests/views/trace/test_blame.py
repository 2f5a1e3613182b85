"""What a device's time goes to, as it travels."""

from __future__ import annotations

import pytest

from tests.support.traces import draw
from tests.support.views import ask, column, words
from tests.views.trace.pictures import WAITING
from torch_tb_profiler.base.errors import NotFoundError, UsageError


def test_the_track_stands_above_the_streams_of_its_device() -> None:
    payload = ask(draw(WAITING), "trace")
    kinds = [(track["kind"], track["name"], track["device"]) for track in payload["tracks"]]
    assert kinds == [
        ("steps", "Steps", None),
        ("thread", "thread 1", None),
        ("blame", "Why idle", 0),
        ("stream", "stream 7", 0),
        ("counter", "Utilization", 0),
    ]
    ids = [track["id"] for track in payload["tracks"]]
    assert len(set(ids)) == len(ids)
    assert payload["categories"][:4] == ["compute", "exposed_communication", "exposed_copy", "data_loading"]


def test_without_a_device_or_a_complete_step_there_is_no_track() -> None:
    assert "blame" not in {track["kind"] for track in ask(draw("host cpu_op a 0 10"), "trace")["tracks"]}
    unfinished = draw("""
    host  user_annotation  ProfilerStep#1      0  100
    host  cuda_runtime     cudaLaunchKernel   10   10  correlation=1
    """)
    assert "blame" not in {track["kind"] for track in ask(unfinished, "trace")["tracks"]}


def test_the_tracks_are_listed_without_an_analysis_of_idle_time() -> None:
    trace = draw(WAITING)
    ask(trace, "trace")
    assert not any("idle" in str(key) for key in trace._memo)


def test_a_tile_tiles_the_step_by_category() -> None:
    trace = draw(WAITING)
    payload = ask(trace, "trace")
    track = next(track["id"] for track in payload["tracks"] if track["kind"] == "blame")
    tile = ask(trace, "trace/blame", begin=0, end=200_000, width=1000)
    assert tile["unit_ns"] == 1
    assert set(tile["lane_track"]) == {track}
    start, duration = column(tile, "start", "<i4"), column(tile, "duration", "<i4")
    color, event = column(tile, "color", "<u2"), column(tile, "event", "<i4")
    boxes = sorted(zip(start, duration, color, event, strict=True))
    assert [(begin, lasting, payload["categories"][code]) for begin, lasting, code, _ in boxes] == [
        (0, 60_000, "data_loading"),
        (60_000, 1_000, "unrecorded"),
        (61_000, 4_000, "operator"),
        (65_000, 10_000, "launch_call"),
        (75_000, 2_000, "launch_latency"),
        (77_000, 43_000, "compute"),
        (120_000, 9_000, "sync"),
        (129_000, 1_000, "operator"),
        (130_000, 10_000, "unrecorded"),
        (140_000, 10_000, "operator"),
        (150_000, 10_000, "launch_call"),
        (160_000, 2_000, "launch_latency"),
        (162_000, 38_000, "compute"),
    ]
    assert [trace.strings[trace.events.name[row]] for *_, row in boxes][5] == "gemm"


@pytest.mark.parametrize("width", [1, 3, 50])
def test_at_every_zoom_the_boxes_hold_all_of_the_step(width: int) -> None:
    tile = ask(draw(WAITING), "trace/blame", begin=0, end=200_000, width=width)
    assert sum(column(tile, "busy", "<i4")) * tile["unit_ns"] == pytest.approx(200_000, abs=13 * tile["unit_ns"])
    assert sum(column(tile, "count", "<u4")) == 13


def test_a_moment_of_a_gap_names_its_cause_its_subject_and_what_emptied_the_queue() -> None:
    trace = draw(WAITING)
    found = ask(trace, "trace/moment", device=0, at=155_000)
    assert (found["category"], found["begin_ns"], found["end_ns"]) == ("launch_call", 150_000, 160_000)
    assert (found["gap_begin_ns"], found["gap_end_ns"], found["step"]) == (120_000, 162_000, "1")
    assert found["subject"]["name"] == "cudaLaunchKernel"
    assert found["operator"]["name"] == "aten::add"
    assert found["emptied_by"]["name"] == "cudaStreamSynchronize"
    assert words(found["headline"]) == "GPU 0 is idle for 10.0 µs of this 42.0 µs gap, waiting for launch calls."
    assert words(found["emptied"]) == "cudaStreamSynchronize drained the queue before this gap."
    assert found["evidence"][0]["link"] == "idle?device=0&select=launch_call%2FcudaLaunchKernel"
    assert [part["category"] for part in found["parts"]] == [
        "sync", "operator", "unrecorded", "operator", "launch_call", "launch_latency",
    ]  # fmt: skip
    first = ask(trace, "trace/moment", device=0, at=0)
    assert (first["category"], first["emptied_by"]) == ("data_loading", None)
    assert words(first["emptied"]).startswith("No sync caused this")


def test_a_moment_of_work_names_the_item() -> None:
    found = ask(draw(WAITING), "trace/moment", device=0, at=100_000)
    assert (found["category"], found["subject"]["name"], found["operator"]["name"]) == (
        "compute",
        "gemm",
        "aten::mm",
    )
    assert words(found["headline"]) == "GPU 0 runs gemm for 43.0 µs."
    assert (found["gap_begin_ns"], found["parts"], found["evidence"], found["emptied"]) == (None, [], [], [])


def test_where_nothing_is_recorded_nothing_is_blamed() -> None:
    found = ask(
        draw("gpu0 kernel gemm 0 10 stream=7\ngpu0 kernel gemm 50 10 stream=7"),
        "trace/moment",
        device=0,
        at=30_000,
    )
    assert (found["subject"], found["operator"], found["emptied_by"]) == (found["subject"], None, None)
    assert found["category"] == "unlinked"


def test_what_cannot_be_asked() -> None:
    trace = draw(WAITING)
    with pytest.raises(UsageError, match="begin must be less"):
        ask(trace, "trace/moment", device=0, at=5, until=5)
    for wrong in ({"begin": 5, "end": 5}, {"begin": 0, "end": 5, "width": 0}):
        with pytest.raises(UsageError):
            ask(trace, "trace/blame", **wrong)
    with pytest.raises(UsageError, match="category"):
        ask(trace, "trace/moment", device=0, at=0, category="fun")
    for wrong in ({"device": 0, "at": 200_000}, {"device": 4, "at": 0}):
        with pytest.raises(NotFoundError):
            ask(trace, "trace/moment", **wrong)
