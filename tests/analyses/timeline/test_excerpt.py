from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.traces import draw, read, read_bytes
from torch_tb_profiler.analyses.timeline import ExcerptRange
from torch_tb_profiler.analyses.timeline.excerpt import write_excerpt
from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.ingest import read_trace
from torch_tb_profiler.model.trace import Trace

PICTURE = """
host  user_annotation  ProfilerStep#1    0  100
host  user_annotation  ProfilerStep#2  100  100
host  cpu_op           aten::mm         10   40   External id=1
host  cuda_runtime     cudaLaunch       20   10   correlation=7
host  cpu_op           aten::add       120    1
gpu0  kernel           gemm             60   50   correlation=7 device=0 stream=7
"""


def cut(trace: Trace, **options: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(b"".join(write_excerpt(trace, ExcerptRange(**options))))
    return document


def names(trace: Trace, **options: Any) -> list[str]:
    return [event["name"] for event in cut(trace, **options)["traceEvents"] if event["ph"] in "XBi"]


def test_what_touches_the_window_is_kept() -> None:
    trace = draw(PICTURE)
    assert names(trace, begin=40_000, end=100_000) == ["ProfilerStep#1", "aten::mm", "gemm"]
    assert names(trace, begin=110_000) == ["ProfilerStep#2", "aten::add"]
    assert names(trace, begin=50_000, end=60_000) == ["ProfilerStep#1"]


def test_a_step_with_the_device_work_launched_in_it() -> None:
    assert names(draw(PICTURE), step="1") == ["ProfilerStep#1", "ProfilerStep#2", "aten::mm", "cudaLaunch", "gemm"]
    with pytest.raises(UsageError, match="no step"):
        cut(draw(PICTURE), step="3")
    with pytest.raises(UsageError, match="not both"):
        cut(draw(PICTURE), step="1", begin=0)


def test_categories_and_least_duration() -> None:
    trace = draw(PICTURE)
    assert names(trace, categories="CPU_op, kernel") == ["aten::mm", "aten::add", "gemm"]
    assert names(trace, categories="cpu_op", min_duration_ns=2000) == ["aten::mm"]
    with pytest.raises(UsageError, match="no events match") as error:
        cut(trace, categories="nothing")
    assert "cuda_runtime" in str(error.value.hint)


def test_a_window_behind_the_recording_names_its_end() -> None:
    with pytest.raises(UsageError, match="no events match") as error:
        cut(draw(PICTURE), begin=10**12)
    assert error.value.hint == "the recording ends at 200 µs"


def test_begin_and_end_events_stay_together() -> None:
    trace = read(
        [
            {"ph": "B", "name": "outer", "pid": 1, "tid": 1, "ts": 0},
            {"ph": "B", "name": "inner", "pid": 1, "tid": 1, "ts": 10},
            {"ph": "E", "pid": 1, "tid": 1, "ts": 20},
            {"ph": "E", "pid": 1, "tid": 1, "ts": 100},
            {"ph": "B", "name": "later", "pid": 1, "tid": 1, "ts": 200},
            {"ph": "E", "pid": 1, "tid": 1, "ts": 210},
        ]
    )
    events = cut(trace, begin=30_000, end=50_000)["traceEvents"]
    assert [(event["ph"], event["ts"]) for event in events] == [("B", 0), ("E", 100)]


def test_flows_whose_ends_are_cut_off_go() -> None:
    def flow(phase: str, ts: int, id: int) -> dict[str, Any]:
        return {"ph": phase, "cat": "ac2g", "name": "ac2g", "pid": 1, "tid": 1, "ts": ts, "id": id}

    trace = draw(PICTURE, flow("s", 20, 7), flow("f", 45, 7), flow("s", 25, 8), flow("f", 120, 8))
    flows = [event for event in cut(trace, begin=0, end=60_000)["traceEvents"] if event["ph"] in "sf"]
    assert [(event["ph"], event["id"]) for event in flows] == [("s", 7), ("f", 7)]


def test_everything_else_survives() -> None:
    events = [
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": "a", "ts": 0, "args": {"name": "loop"}},
        {"ph": "X", "cat": "odd", "name": "x", "pid": 1, "tid": "a", "ts": 1700000000000000.123, "dur": 1.5,
         "args": {"list": [1, {"a": None}], "text": "\\u0000\"", "mixed": 3}},
        {"ph": "X", "cat": "odd", "name": "y", "pid": 1, "tid": "a", "ts": 1700000000000003, "dur": 0,
         "args": {"mixed": "three", "flag": True}},
        {"ph": "i", "s": "t", "name": "mark", "pid": 1, "tid": "a", "ts": 1700000000000002},
        {"ph": "C", "name": "queue", "pid": 1, "ts": 1700000000000002, "args": {"length": 4}},
    ]  # fmt: skip
    text = json.dumps({"distributedInfo": {"rank": 3}, "traceEvents": events}).replace("0000000.1", "0000000.123")
    trace = read_bytes(text.encode())
    document = cut(trace)
    assert document["distributedInfo"] == {"rank": 3}
    again = read_bytes(b"".join(write_excerpt(trace, ExcerptRange())))
    assert again.trace_start_ns == trace.trace_start_ns
    for name in ("phase", "start", "duration", "id"):
        assert getattr(again.events, name).tolist() == getattr(trace.events, name).tolist(), name
    for written, event in zip(document["traceEvents"], events, strict=True):
        assert {key: value for key, value in written.items() if key not in ("ts", "dur")} == {
            key: value for key, value in event.items() if key not in ("ts", "dur")
        }


@pytest.mark.slow
def test_real_traces_are_the_same_after_a_whole_cut(corpus: Path) -> None:
    """Whole traces written and read again have the same columns, to the nanosecond."""
    compared = 0
    for run in ("kineto2021_resnet50_v100_nw0", "hta_ns_resolution_v100", "composer_merged_dev", "pippy_gloo_ref",
                "malformed_odd_events_dev", "tptut_h100_transformer_a", "malformed_nan_dev"):  # fmt: skip
        path = sorted((corpus / "traces" / run).iterdir())[0]
        with path.open("rb") as stream:
            trace = read_trace(stream)
        again = read_bytes(b"".join(write_excerpt(trace, ExcerptRange())))
        event_count = len(again.events)
        assert len(trace.events) - event_count <= 60, run  # flow events without their other end
        for phase in "XBiCM":
            for name in ("start", "duration"):
                before = getattr(trace.events, name)[trace.events.phase == ord(phase)] + trace.trace_start_ns
                after = getattr(again.events, name)[again.events.phase == ord(phase)] + again.trace_start_ns
                if name == "duration":
                    before, after = before - trace.trace_start_ns, after - again.trace_start_ns
                assert before.tolist() == after.tolist(), (run, phase, name)
        assert set(again.args) <= set(trace.args)
        compared += 1
    assert compared == 7
