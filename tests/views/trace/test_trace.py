"""The tracks of the timeline, its tiles and counters, as they travel."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.support.traces import draw
from tests.support.views import ask, column, words
from tests.views.trace.pictures import PICTURE
from torch_tb_profiler.analyses.timeline import tile as tile_analysis
from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.model.kernels.families import FAMILIES
from torch_tb_profiler.model.trace import Trace


def test_tracks_in_display_order_with_counters_beneath_their_device() -> None:
    payload = ask(draw(PICTURE), "trace")
    listed = [(track["kind"], track["role"], track["slices"], track["depth"]) for track in payload["tracks"]]
    assert listed == [
        ("steps", "", 0, 1),
        ("thread", "main", 5, 3),
        ("blame", "", 0, 1),
        ("stream", "compute", 1, 1),
        ("counter", "utilization", 0, 0),
    ]
    assert payload["counts"]["slices"] == 6
    assert payload["counts"]["python_slices"] == 2
    assert (payload["begin_ns"], payload["end_ns"]) == (0, 200_000)
    assert [step["name"] for step in payload["steps"]] == ["1"]
    assert set(payload["reasons"]) == {"sm_efficiency", "memory", "wall"}
    assert ask(draw(PICTURE), "trace", python=True)["tracks"][1]["depth"] == 5


def test_a_tile_says_what_is_where() -> None:
    trace = draw(PICTURE)
    tile = ask(trace, "trace/tile", begin=5_000, end=205_000, width=10)
    assert (tile["resolution_ns"], tile["unit_ns"]) == (16384, 64)
    assert tile["lane_track"] == [0, 0, 0, 1, 0]
    assert tile["lane_depth"] == [0, 1, 2, 0, 1]
    assert tile["lane_first"] == [0, 1, 2, 3, 4, 5]
    start, duration = column(tile, "start", "<i4"), column(tile, "duration", "<i4")
    assert [5_000 + 64 * time for time in start] == pytest.approx([0, 10_000, 20_000, 60_000, 50_000], abs=64)
    assert [64 * time for time in duration] == pytest.approx([200_000, 40_000, 10_000, 50_000, 36_000], abs=64)
    names = [trace.strings[code] for code in column(tile, "name", "<i4")]
    assert names == ["ProfilerStep#1", "aten::mm", "cudaLaunch", "gemm", "nn.Module: Net_0"]
    assert [ask(trace, "trace")["classes"][code] for code in column(tile, "color", "<u2")] == [
        "annotation",
        "cpu_exec",
        "runtime",
        "kernel",
        "python",
    ]
    assert list(tile["names"].values()) == ["ProfilerStep#1"]
    codes = ",".join(map(str, column(tile, "name", "<i4")))
    assert list(ask(trace, "trace/names", codes=codes)["names"].values()) == names


def test_times_of_a_narrow_tile_are_exact() -> None:
    tile = ask(draw("host cpu_op a 0.001 0.007"), "trace/tile", begin=0, end=20, width=10)
    assert tile["unit_ns"] == 1
    assert (column(tile, "start", "<i4"), column(tile, "duration", "<i4")) == ([0], [7])


def test_colors_by_module_by_process_group_and_by_family() -> None:
    trace = draw(PICTURE, {
        "ph": "X", "cat": "kernel", "name": "ncclAllReduce", "pid": 0, "tid": 9, "ts": 120, "dur": 5,
        "args": {"Process Group Name": "1", "Process Group Description": "tp", "device": 0, "stream": 9},
    })  # fmt: skip
    for by, expected in (
        ("module", ["none", "Net_0", "Net_0", "Net_0", "none"]),
        ("process_group", ["none", "none", "none", "none", "1 (tp)"]),
        ("family", ["none", "none", "none", "matrix product", "communication"]),
    ):
        legend = ask(trace, "trace/colors", by=by)["texts"]
        tile = ask(trace, "trace/tile", begin=0, end=200_000, color=by)
        assert [legend[code] for code in column(tile, "color", "<u2")][:5] == expected, "the slices; frames follow"
    with pytest.raises(UsageError, match="color"):
        ask(trace, "trace/tile", begin=0, end=1, color="x")


def test_the_legend_names_families_with_work_in_the_order_of_the_page() -> None:
    texts = ask(draw(PICTURE), "trace/colors", by="family")["texts"]
    assert [text for text in texts if text] == ["none", "matrix product"]
    assert texts.index("matrix product") == 1 + FAMILIES.index("matrix product")
    page = Path(__file__).parents[3] / "fe" / "src" / "base" / "family.ts"
    colors = page.read_text(encoding="utf-8").partition("COLORS: Record<string, string> = {")[2].partition("};")[0]
    assert tuple(re.findall(r"^  '?([a-z ]+)'?:", colors, re.MULTILINE)) == FAMILIES


def test_a_tile_never_outgrows_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = draw("\n".join(f"host cpu_op s{i} {2 * i} 1" for i in range(200)))
    monkeypatch.setattr(tile_analysis, "MAX_BOXES", 50)
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
    tracks = {track["name"]: track for track in payload["tracks"] if track["kind"] == "counter"}
    assert tracks["Memory allocated"]["high"] == 500
    assert tracks["queue · length"]["group"] == 0
    assert (tracks["Memory allocated"]["unit"], tracks["Memory allocated"]["group"]) == ("bytes", 1)
    counters = ask(trace, "trace/counters", begin=0, end=10**6, width=1, tracks=tracks["Memory allocated"]["id"])
    assert column(counters, "low", "<f8") == [0]
    assert column(counters, "high", "<f8") == [500]
    assert column(counters, "last", "<f8") == [20]


def test_the_utilization_of_a_bucket_is_its_busy_share() -> None:
    trace = draw(PICTURE)
    (track,) = (track["id"] for track in ask(trace, "trace")["tracks"] if track["role"] == "utilization")
    counters = ask(trace, "trace/counters", begin=0, end=131072, width=2, tracks=track)
    assert counters["resolution_ns"] == 65536
    assert column(counters, "mean", "<f8") == pytest.approx([5536 / 65536, (110_000 - 65536) / 65536])


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


def test_kernels_have_short_labels_and_what_an_operator_shares_its_name_with_has_none() -> None:
    trace = draw("""
    host  cpu_op        triton_poi_fused_add_0           0  10
    gpu0  kernel        triton_poi_fused_add_0          10  10  stream=7
    gpu0  kernel        ncclDevKernel_AllReduce(void*)  30  10  stream=7
    gpu0  gpu_memcpy    Memcpy~HtoD                     50  10  stream=7
    """)
    tile = ask(trace, "trace/tile", begin=0, end=100_000, width=200)
    code = next(code for code, name in tile["names"].items() if name.startswith("nccl"))
    assert len(tile["names"]) == 3
    assert tile["short_names"] == {code: "NCCL AllReduce"}
    every = ask(trace, "trace/names", codes=",".join(tile["names"]))
    assert (every["names"], every["short_names"]) == (tile["names"], tile["short_names"])


WALL = 1_790_000_000_000_000_000


@pytest.mark.parametrize(
    ("trace", "wall", "reason"),
    [
        (draw("host cpu_op a 0 1", baseTimeNanoseconds=WALL), WALL, None),
        (draw(f"host cpu_op a {WALL // 1000} 1"), WALL, None),
        (draw("host cpu_op a 3600000000000 1"), None, "doesn't record when its clock started"),
        (replace(draw("host cpu_op a 0 1", baseTimeNanoseconds=WALL), clock="boot"), None, "booted"),
        (replace(draw("host cpu_op a 0 1"), clock="iteration"), None, "each iteration"),
        (replace(draw("host cpu_op a 0 1"), clock="local"), None, "time zone"),
    ],
)
def test_the_time_of_day_is_that_of_the_wall_or_none(trace: Trace, wall: int | None, reason: str | None) -> None:
    payload = ask(trace, "trace")
    assert payload["wall_ns"] == wall
    why = payload["reasons"].get("wall")
    assert (why is None) == (reason is None) and (reason is None or reason in words(why))
