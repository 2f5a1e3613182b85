from __future__ import annotations

import pytest

from tests.support.traces import draw
from tests.support.views import ask, words
from torch_tb_profiler.base.errors import NotFoundError, UsageError
from torch_tb_profiler.views._shared.availability import idle_reason as unavailable

PICTURE = """
host  user_annotation  ProfilerStep#1                          0  100
host  user_annotation  ProfilerStep#2                        100  100
host  cpu_op           enumerate(DataLoader)#_It.__next__      0   60
host  cpu_op           aten::mm                               61   20
host  cuda_runtime     cudaLaunchKernel                       65   10  correlation=1
host  cpu_op           enumerate(DataLoader)#_It.__next__    100   40
host  cpu_op           aten::mm                              141   20
host  cuda_runtime     cudaLaunchKernel                      145   10  correlation=2
gpu0  kernel           gemm                                   77   23  correlation=1 stream=7
gpu0  kernel           gemm                                  157   43  correlation=2 stream=7
"""


def test_steps_and_causes_sum_exactly() -> None:
    payload = ask(draw(PICTURE), "idle")
    assert (payload["duration_ns"], payload["idle_ns"], payload["counted"]) == (200_000, 134_000, 2)
    for step in payload["steps"]:
        parts = ("compute_ns", "exposed_communication_ns", "exposed_copy_ns", "idle_ns")
        assert sum(step[part] for part in parts) == step["duration_ns"]
        assert step["waiting_ns"] is None
    rows = [(row["cause"], row["subject"], row["time_ns"], row["gaps"]) for row in payload["causes"]]
    assert rows == [
        ("data_loading", "enumerate(DataLoader)#_It.__next__", 100_000, 2),
        ("launch_call", "cudaLaunchKernel", 20_000, 2),
        ("operator", "aten::mm", 8_000, 2),
        ("launch_latency", "cudaLaunchKernel", 4_000, 2),
        ("unrecorded", None, 2_000, 2),
    ]
    assert payload["caught_up_ns"] == 134_000
    assert [(row["cause"], row["time_ns"], row["gaps"]) for row in payload["sums"]][:2] == [
        ("data_loading", 100_000, 2),
        ("launch_call", 20_000, 2),
    ]
    for row in payload["causes"]:
        if row["cause"] == "launch_latency":
            assert row["gain_ns"] is None  # the device's own
        else:
            assert 0 <= row["gain_ns"] <= row["time_ns"] / payload["counted"]
    assert payload["causes"][0]["gain_ns"] == 50_000  # all loading of both steps, with nothing to take its place
    assert {"gain_ns", "waiting_ns"} <= payload["reasons"].keys()


def test_the_gain_of_a_cause_is_that_of_all_its_rows_together() -> None:
    annotated = "host user_annotation first 60 1\nhost user_annotation second 140 1"
    payload = ask(draw(PICTURE + annotated), "idle")
    rows: dict[str, list[float | None]] = {}
    for row in payload["causes"]:
        rows.setdefault(row["cause"], []).append(row["gain_ns"])
    totals = {row["cause"]: row["gain_ns"] for row in payload["sums"]}
    assert totals["launch_latency"] is None and totals["data_loading"] == rows["data_loading"][0] == 50_000
    # The step of each row ends 1 us earlier without it: both together, the mean step does.
    assert (rows["annotation"], totals["annotation"]) == ([500, 500], 1_000)


def test_time_in_a_step_alone_is_one_row_of_unrecorded_host_code() -> None:
    payload = ask(draw(PICTURE), "idle")
    (row,) = (row for row in payload["causes"] if row["cause"] == "unrecorded")
    assert (row["subject"], row["time_ns"], row["gain_ns"]) == (None, 2_000, 1_000)


def test_unrecorded_host_time_has_a_gain_too() -> None:
    """The host does something between its launches, whatever it is."""
    payload = ask(
        draw("""
        host  cuda_runtime  cudaLaunchKernel   0   2  correlation=1
        gpu0  kernel        gemm               4  10  correlation=1 stream=7
        host  cuda_runtime  cudaLaunchKernel  80   2  correlation=2
        gpu0  kernel        gemm              84  10  correlation=2 stream=7
        """),
        "idle",
    )
    gains = {row["cause"]: row["gain_ns"] for row in payload["causes"]}
    assert gains["unrecorded"] == 66_000 and gains["launch_latency"] is None


def test_idle_time_of_one_step_device_and_stream() -> None:
    trace = draw(PICTURE)
    assert ask(trace, "idle", step="2")["idle_ns"] == 57_000
    assert ask(trace, "idle", device=0, stream=7)["stream"] == 7
    for wrong in ({"step": "9"}, {"device": 5}, {"stream": 5}):
        with pytest.raises(NotFoundError):
            ask(trace, "idle", **wrong)


def test_the_subject_is_the_requested_one() -> None:
    trace = draw(f"""
    {PICTURE}
    host  python_function  /home/me/train.py(7):~load  0  60
    """)

    def subjects(by: str) -> set[str | None]:
        return {row["subject"] for row in ask(trace, "idle", by=by)["causes"]}

    assert "aten::mm" in subjects("operator")
    assert "/home/me/train.py(7): load" in subjects("frame")
    assert subjects("emptied_by") == {None}
    assert subjects("module") == {None}


def test_a_row_has_its_gaps_longest_first() -> None:
    trace = draw(PICTURE)
    gaps = ask(trace, "idle/gaps", cause="data_loading")
    assert (gaps["total"], gaps["time_ns"]) == (2, 100_000)
    assert [(gap["begin_ns"], gap["end_ns"], gap["step"]) for gap in gaps["rows"]] == [
        (0, 60_000, "1"),
        (100_000, 140_000, "2"),
    ]
    assert gaps["rows"][0]["name"] == "enumerate(DataLoader)#_It.__next__"
    assert ask(trace, "idle/gaps", cause="data_loading", limit=1)["total"] == 2
    assert ask(trace, "idle/gaps", cause="operator", subject="aten::mm")["total"] == 2
    assert ask(trace, "idle/gaps", cause="unrecorded")["total"] == 2
    with pytest.raises(UsageError):
        ask(trace, "idle/gaps", cause="bad luck")
    with pytest.raises(NotFoundError):
        ask(trace, "idle/gaps", cause="allocator")


def test_the_flame_graph_has_all_idle_time_and_no_steps() -> None:
    flame = ask(draw(PICTURE), "idle/flame")
    roots = [frame for frame in flame["frames"] if frame["parent"] is None]
    assert sum(frame["value_ns"] for frame in roots) == flame["total_ns"] == 134_000
    assert not any("ProfilerStep" in frame["name"] for frame in flame["frames"])
    for at, frame in enumerate(flame["frames"]):
        assert frame["parent"] is None or frame["parent"] < at
    (call,) = [f for f in flame["frames"] if f["name"] == "cudaLaunchKernel" and f["cause"] == "launch_call"]
    assert flame["frames"][call["parent"]]["name"] == "aten::mm"


def test_a_gap_with_several_subjects_counts_once_for_its_cause() -> None:
    payload = ask(
        draw("""
        host  cpu_op        aten::mm          0  40
        host  cpu_op        aten::add        40  40
        host  cuda_runtime  cudaLaunchKernel 80   2  correlation=1
        gpu0  kernel        gemm             84  10  correlation=1 stream=7
        """),
        "idle",
    )
    assert [(row["subject"], row["gaps"]) for row in payload["causes"]][:2] == [("aten::mm", 1), ("aten::add", 1)]
    assert (payload["sums"][0]["cause"], payload["sums"][0]["gaps"]) == ("operator", 1)


def test_many_subjects_are_summed_up_in_one_row() -> None:
    lines = []
    for i in range(60):
        lines += [
            f"host cpu_op op{i} {i * 100} 80",
            f"host cuda_runtime launch {i * 100 + 80} 5 correlation={i + 1}",
            f"gpu0 kernel gemm {i * 100 + 88} 2 correlation={i + 1} stream=7",
        ]
    payload = ask(draw("\n".join(lines)), "idle")
    assert sum(row["time_ns"] for row in payload["causes"]) == payload["idle_ns"]
    (rest,) = [row for row in payload["causes"] if row["others"]]
    assert (rest["cause"], rest["subject"], rest["others"], rest["time_ns"]) == ("operator", None, 20, 1_600_000)


def test_the_parts_about_launches() -> None:
    trace = draw(f"""
    {PICTURE}
    host  cuda_runtime  cudaMemcpyAsync  190  5  correlation=3
    gpu0  gpu_memcpy    Memcpy~HtoD~(Pinned~->~Device)  200  10  correlation=3 stream=8 bytes=4000
    """)
    launch, copy = ask(trace, "idle/launches")["rows"]
    assert (launch["name"], launch["calls"], launch["short"], launch["median_delay_ns"]) == (
        "cudaLaunchKernel",
        2,
        0,
        2_000,
    )
    assert ask(trace, "idle/launches", slow_call_ns=4_000)["rows"][1]["slow"] == copy["slow"] + 1
    queue = ask(trace, "idle/queue", points=10)
    assert [row["longest"] for row in queue["rows"]] == [1, 1]
    assert len(queue["edges_ns"]) == 11
    (way,) = ask(trace, "idle/bandwidth", points=10)["rows"]
    assert (way["direction"], way["memory"]) == ("host to device", "pinned")
    assert way["bytes"] == sum(way["curve"]) == 4000
    sequences = ask(trace, "idle/sequences")
    assert (sequences["rows"], sequences["share"]) == ([], 0)


def test_unknown_values_have_a_reason() -> None:
    alone = ask(draw("gpu0 kernel a 0 10 stream=7\ngpu0 kernel b 50 10 stream=7"), "idle")
    assert alone["causes"][0]["cause"] == "unlinked"
    assert "ProfilerActivity.CPU" in words(alone["reasons"]["causes"])
    quiet = ask(draw("host cpu_op aten::mm 0 50\ngpu0 kernel a 0 10 stream=7\ngpu0 kernel b 50 10"), "idle")
    assert "runtime calls" in words(quiet["reasons"]["causes"])
    assert "distributed" in [phrase["link"] for phrase in quiet["reasons"]["waiting_ns"]]
    assert "ProfilerActivity.CUDA" in (unavailable(draw("host cpu_op aten::mm 0 50")) or "")
    with pytest.raises(NotFoundError):
        ask(draw("host cpu_op aten::mm 0 50"), "idle")
