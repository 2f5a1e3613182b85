"""One event of the timeline, its links, searches and selections, as they travel."""

from __future__ import annotations

import pytest

from tests.support.traces import draw
from tests.support.views import ask, words
from tests.views.trace.pictures import PICTURE
from torch_tb_profiler.base.errors import NotFoundError, UsageError


def test_everything_of_an_event() -> None:
    trace = draw(PICTURE)
    event = ask(trace, "trace/event", event=5)
    assert (event["name"], event["kind"], event["start_ns"], event["duration_ns"]) == (
        "gemm",
        "kernel",
        60_000,
        50_000,
    )
    assert event["args"] == {"correlation": 7, "device": 0, "stream": 7}
    assert (event["operator"]["name"], event["launch"]["name"]) == ("aten::mm", "cudaLaunch")
    assert (event["operator_name"], event["kernel_name"]) == ("aten::mm", "gemm")
    assert ask(trace, "trace/module", event=5) == {
        "event": 5,
        "path": ["Net_0"],
        "backward": False,
        "reason": None,
    }
    assert "outside" in words(ask(trace, "trace/module", event=0)["reason"])
    assert event["stack_source"] == "python frames"
    assert event["stack"][1] | {"event": 0} == {
        "text": "train.py(7): step",
        "file": "train.py",
        "line": 7,
        "function": "step",
        "event": 0,
    }
    assert event["step"] == "1"
    operator = ask(trace, "trace/event", event=3)
    assert operator["self_ns"] == 30_000
    assert [around["name"] for around in operator["around"]] == ["ProfilerStep#1"]
    unfolded = ask(trace, "trace/event", event=3, python=True)
    assert unfolded["depth"] == operator["depth"] + 2
    with pytest.raises(NotFoundError):
        ask(trace, "trace/event", event=6)


def test_a_step_has_what_its_host_did_while_the_device_was_behind() -> None:
    """The device is at work for step 1 until 160 us, and the host in step 2 from 100 us on."""
    trace = draw("""
    host  user_annotation      ProfilerStep#1    0  100
    host  cuda_runtime         cudaLaunchKernel  5    5  correlation=1
    gpu0  gpu_user_annotation  ProfilerStep#1   70   90  stream=7
    gpu0  kernel               gemm             70   90  correlation=1 stream=7
    host  user_annotation      ProfilerStep#2  100  100
    host  cpu_op               aten::mm        110   10
    host  cuda_runtime         cudaLaunchKernel 112   5  correlation=2
    gpu0  gpu_user_annotation  ProfilerStep#2  165   90  stream=7
    gpu0  kernel               gemm            165   90  correlation=2 stream=7
    host  cpu_op               aten::after     205   10
    """)
    assert [ask(trace, "trace/event", event=row)["step"] for row in range(10)] == [*"1111222222"[:9], None]


def test_the_recorded_call_stack_comes_first() -> None:
    trace = draw("host cpu_op mm 0 9", {"ph": "M", "name": "x"}, {
        "ph": "X", "cat": "cpu_op", "name": "add", "pid": 1, "tid": 1, "ts": 20, "dur": 1,
        "args": {"Call stack": "a.py(3): f;<built-in method run>"},
    })  # fmt: skip
    event = ask(trace, "trace/event", event=2)
    assert [(frame["file"], frame["line"]) for frame in event["stack"]] == [("a.py", 3), (None, None)]
    assert event["stack_source"] == "call stack"
    assert set(ask(trace, "trace/event", event=0)["reasons"]) == {"stack"}
    assert "with_stack" in words(ask(trace, "trace/module", event=0)["reason"])


def test_flows_carry_the_wait_in_the_queue() -> None:
    flows = ask(draw(PICTURE), "trace/flows", event=4)
    (edge,) = flows["edges"]
    assert (edge["kind"], edge["source"]["name"], edge["target"]["name"]) == ("launch", "cudaLaunch", "gemm")
    assert edge["delay_ns"] == 40_000
    assert (flows["previous"], flows["next"], flows["kernels"]) == ([], [5], [5])
    assert ask(draw(PICTURE), "trace/flows", event=3)["kernels"] == [5]
    assert ask(draw(PICTURE), "trace/flows", event=5)["previous"] == [4]


def test_search_lists_hits_by_track() -> None:
    search = ask(draw(PICTURE), "trace/search", query="m", at=15_000)
    assert search["hits"] == 3  # aten::mm, gemm, the module
    assert sum(track["hits"] for track in search["by_track"]) == 3
    assert (search["previous"]["name"], search["next"]["name"], search["index"]) == ("aten::mm", "gemm", 2)
    assert [row["name"] for row in search["rows"]] == ["nn.Module: Net_0", "aten::mm", "gemm"]
    assert search["rows"][0]["depth"] is None  # folded
    only = ask(draw(PICTURE), "trace/search", query="m", track=1)
    assert [row["name"] for row in only["rows"]] == ["gemm"]


def test_hits_are_placed_on_their_lanes() -> None:
    trace = draw(PICTURE)
    hits = ask(trace, "trace/hits", query="m", begin=0, end=200_000)
    events = [ask(trace, "trace/event", event=row) for row in (3, 5)]  # aten::mm and gemm: the module is folded
    for column in ("track", "depth"):
        assert hits[column] == [event[column] for event in events]
    assert hits["begin_ns"] == [event["start_ns"] for event in events]
    assert len(ask(trace, "trace/hits", query="m", begin=0, end=200_000, python=True)["track"]) == 3
    with pytest.raises(UsageError, match="empty"):
        ask(trace, "trace/hits", query="", begin=0, end=1)


def test_selection_sorts_and_limits() -> None:
    selection = ask(draw(PICTURE), "trace/selection", begin=0, end=100_000, sort="self")
    assert selection["rows"][0]["name"] == "ProfilerStep#1"
    assert selection["rows"][0]["self_ns"] == 60_000
    assert (selection["slices"], selection["names"]) == (4, 4)
    assert selection["devices"][0] == {
        "device": 0, "busy_ns": 40_000, "idle_ns": 60_000, "compute_ns": 40_000,
        "communication_ns": 0, "overlap_ns": 0, "copy_ns": 0,
    }  # fmt: skip
    by_name = ask(draw(PICTURE), "trace/selection", begin=0, end=100_000, sort="name", limit=2)
    assert [row["name"] for row in by_name["rows"]] == ["ProfilerStep#1", "aten::mm"]
    with pytest.raises(UsageError, match="sort"):
        ask(draw(PICTURE), "trace/selection", begin=0, end=1, sort="x")
