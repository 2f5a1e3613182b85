from __future__ import annotations

import pytest

from tests.support.traces import draw
from tests.support.views import ask, column
from torch_tb_profiler.base.errors import NotFoundError, UsageError
from torch_tb_profiler.views.trace import tiles as trace_tiles

PICTURE = """
host  user_annotation  ProfilerStep#1    0  200
host  python_function  train.py(7):~step  5  90
host  python_function  nn.Module:~Net_0  6   80
host  cpu_op           aten::mm         10   40   External id=1
host  cuda_runtime     cudaLaunch       20   10   correlation=7
gpu0  kernel           gemm             60   50   correlation=7 device=0 stream=7
"""


def test_tracks_in_display_order_with_counters_beneath_their_device() -> None:
    payload = ask(draw(PICTURE), "trace")
    listed = [(track["kind"], track["role"], track["slices"], track["depth"]) for track in payload["tracks"]]
    assert listed == [
        ("steps", "", 0, 1),
        ("thread", "main", 5, 3),
        ("stream", "compute", 1, 1),
        ("counter", "utilization", 0, 0),
    ]
    assert payload["counts"]["slices"] == 6
    assert payload["counts"]["python_slices"] == 2
    assert (payload["begin_ns"], payload["end_ns"]) == (0, 200_000)
    assert [step["name"] for step in payload["steps"]] == ["1"]
    assert set(payload["reasons"]) == {"sm_efficiency", "memory"}
    assert ask(draw(PICTURE), "trace", python=True)["tracks"][1]["depth"] == 5


def test_a_tile_says_what_is_where() -> None:
    trace = draw(PICTURE)
    tile = ask(trace, "trace/tile", begin=5_000, end=205_000, width=10)
    assert (tile["resolution_ns"], tile["unit_ns"]) == (16384, 64)
    assert tile["lane_track"] == [0, 0, 0, 1]
    assert tile["lane_depth"] == [0, 1, 2, 0]
    assert tile["lane_first"] == [0, 1, 2, 3, 4]
    start, duration = column(tile, "start", "<i4"), column(tile, "duration", "<i4")
    assert [5_000 + 64 * time for time in start] == pytest.approx([0, 10_000, 20_000, 60_000], abs=64)
    assert [64 * time for time in duration] == pytest.approx([200_000, 40_000, 10_000, 50_000], abs=64)
    names = [trace.strings[code] for code in column(tile, "name", "<i4")]
    assert names == ["ProfilerStep#1", "aten::mm", "cudaLaunch", "gemm"]
    assert [ask(trace, "trace")["classes"][code] for code in column(tile, "colour", "<u2")] == [
        "annotation",
        "cpu_exec",
        "runtime",
        "kernel",
    ]
    assert list(tile["names"].values()) == ["ProfilerStep#1"]
    codes = ",".join(map(str, column(tile, "name", "<i4")))
    assert list(ask(trace, "trace/names", codes=codes)["names"].values()) == names


def test_times_of_a_narrow_tile_are_exact() -> None:
    tile = ask(draw("host cpu_op a 0.001 0.007"), "trace/tile", begin=0, end=20, width=10)
    assert tile["unit_ns"] == 1
    assert (column(tile, "start", "<i4"), column(tile, "duration", "<i4")) == ([0], [7])


def test_colours_by_module_and_by_process_group() -> None:
    trace = draw(PICTURE, {
        "ph": "X", "cat": "kernel", "name": "ncclAllReduce", "pid": 0, "tid": 9, "ts": 120, "dur": 5,
        "args": {"Process Group Name": "1", "Process Group Description": "tp", "device": 0, "stream": 9},
    })  # fmt: skip
    for by, expected in (
        ("module", ["none", "Net_0", "Net_0", "Net_0", "none"]),
        ("process_group", ["none", "none", "none", "none", "1 (tp)"]),
    ):
        legend = ask(trace, "trace/colours", by=by)["texts"]
        tile = ask(trace, "trace/tile", begin=0, end=200_000, colour=by)
        assert [legend[code] for code in column(tile, "colour", "<u2")] == expected
    with pytest.raises(UsageError, match="colour"):
        ask(trace, "trace/tile", begin=0, end=1, colour="x")


def test_a_tile_never_outgrows_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = draw("\n".join(f"host cpu_op s{i} {2 * i} 1" for i in range(200)))
    monkeypatch.setattr(trace_tiles, "MAX_BOXES", 50)
    tile = ask(trace, "trace/tile", begin=0, end=400_000, width=400)
    counts = column(tile, "count", "<u4")
    assert (len(counts) <= 50, sum(counts), tile["resolution_ns"]) == (True, 200, 8192)


def test_only_the_tracks_that_were_asked_for() -> None:
    tile = ask(draw(PICTURE), "trace/tile", begin=0, end=200_000, tracks="1")
    assert tile["lane_track"] == [1]
    with pytest.raises(UsageError, match="tracks"):
        ask(draw(PICTURE), "trace/tile", begin=0, end=1, tracks="x")


@pytest.mark.parametrize(
    "window", [{"begin": 5, "end": 5}, {"begin": 0, "end": 2**63}, {"begin": 0, "end": 1, "width": 0}]
)
def test_a_window_that_is_none(window: dict[str, int]) -> None:
    with pytest.raises(UsageError):
        ask(draw(PICTURE), "trace/tile", **window)


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
    assert "outside" in ask(trace, "trace/module", event=0)["reason"]
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


def test_the_recorded_call_stack_comes_first() -> None:
    trace = draw("host cpu_op mm 0 9", {"ph": "M", "name": "x"}, {
        "ph": "X", "cat": "cpu_op", "name": "add", "pid": 1, "tid": 1, "ts": 20, "dur": 1,
        "args": {"Call stack": "a.py(3): f;<built-in method run>"},
    })  # fmt: skip
    event = ask(trace, "trace/event", event=2)
    assert [(frame["file"], frame["line"]) for frame in event["stack"]] == [("a.py", 3), (None, None)]
    assert event["stack_source"] == "call stack"
    assert set(ask(trace, "trace/event", event=0)["reasons"]) == {"stack"}
    assert "with_stack" in ask(trace, "trace/module", event=0)["reason"]


def test_flows_carry_the_wait_in_the_queue() -> None:
    flows = ask(draw(PICTURE), "trace/flows", event=4)
    (edge,) = flows["edges"]
    assert (edge["kind"], edge["source"]["name"], edge["target"]["name"]) == ("launch", "cudaLaunch", "gemm")
    assert edge["delay_ns"] == 40_000
    assert (flows["previous"], flows["next"], flows["kernels"]) == ([], [5], [5])
    assert ask(draw(PICTURE), "trace/flows", event=3)["kernels"] == [5]
    assert ask(draw(PICTURE), "trace/flows", event=5)["previous"] == [4]


def test_search_lists_hits_by_track() -> None:
    found = ask(draw(PICTURE), "trace/search", query="m", at=15_000)
    assert found["hits"] == 3  # aten::mm, gemm, the module
    assert sum(track["hits"] for track in found["by_track"]) == 3
    assert (found["previous"]["name"], found["next"]["name"], found["index"]) == ("aten::mm", "gemm", 2)
    assert [row["name"] for row in found["rows"]] == ["nn.Module: Net_0", "aten::mm", "gemm"]
    assert found["rows"][0]["depth"] is None  # folded
    only = ask(draw(PICTURE), "trace/search", query="m", track=1)
    assert [row["name"] for row in only["rows"]] == ["gemm"]


def test_selection_sorts_and_limits() -> None:
    found = ask(draw(PICTURE), "trace/selection", begin=0, end=100_000, sort="self")
    assert found["rows"][0]["name"] == "ProfilerStep#1"
    assert found["rows"][0]["self_ns"] == 60_000
    assert (found["slices"], found["names"]) == (4, 4)
    assert found["devices"][0] == {
        "device": 0, "busy_ns": 40_000, "idle_ns": 60_000, "compute_ns": 40_000,
        "communication_ns": 0, "overlap_ns": 0, "copy_ns": 0,
    }  # fmt: skip
    by_name = ask(draw(PICTURE), "trace/selection", begin=0, end=100_000, sort="name", limit=2)
    assert [row["name"] for row in by_name["rows"]] == ["ProfilerStep#1", "aten::mm"]
    with pytest.raises(UsageError, match="sort"):
        ask(draw(PICTURE), "trace/selection", begin=0, end=1, sort="x")


def test_counters_keep_their_peaks_at_any_zoom() -> None:
    memory = [
        {
            "ph": "i", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": ts,
            "args": {"Device Type": 1, "Device Id": 0, "Total Allocated": value, "Total Reserved": 4096},
        }
        for ts, value in ((0, 10), (10, 500), (11, 0), (30, 20))
    ]  # fmt: skip
    own = [{"ph": "C", "name": "queue", "pid": 1, "ts": ts, "args": {"length": ts}} for ts in (1, 2)]
    trace = draw(PICTURE, *memory, *own)
    payload = ask(trace, "trace")
    assert payload["counts"]["counters"] == 2
    counters = {track["name"]: track for track in payload["tracks"] if track["kind"] == "counter"}
    assert counters["Memory allocated"]["high"] == 500
    assert counters["queue · length"]["group"] == 0
    assert (counters["Memory allocated"]["unit"], counters["Memory allocated"]["group"]) == ("bytes", 1)
    found = ask(trace, "trace/counters", begin=0, end=10**6, width=1, tracks=counters["Memory allocated"]["id"])
    assert column(found, "low", "<f8") == [0]
    assert column(found, "high", "<f8") == [500]
    assert column(found, "last", "<f8") == [20]


def test_the_utilization_of_a_bucket_is_its_busy_share() -> None:
    trace = draw(PICTURE)
    (track,) = (track["id"] for track in ask(trace, "trace")["tracks"] if track["role"] == "utilization")
    found = ask(trace, "trace/counters", begin=0, end=131072, width=2, tracks=track)
    assert found["resolution_ns"] == 65536
    assert column(found, "mean", "<f8") == pytest.approx([5536 / 65536, (110_000 - 65536) / 65536])


def test_hostile_names_and_numbers_do_no_harm() -> None:
    trace = draw(
        "host cpu_op <script>alert(1)</script> 0 5",
        {"ph": "X", "name": "x" * 5000, "pid": "p" * 50, "tid": None, "ts": -5, "dur": 1e30},
        {"ph": "C", "name": None, "pid": [1], "ts": 3, "args": {"a": "NaN", "b": 1e400}},
    )
    assert ask(trace, "trace")["counts"]["slices"] == 2
    tile = ask(trace, "trace/tile", begin=0, end=10_000)
    assert all(len(text) <= 300 for text in tile["names"].values())
    ask(trace, "trace/counters", begin=0, end=10_000)
    for row in range(len(trace)):
        ask(trace, "trace/event", event=row)
        ask(trace, "trace/flows", event=row)
