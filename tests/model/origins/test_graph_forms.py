"""What PyTorch 2.15 writes about CUDA graphs beside their kernels: nodes that are no work, lanes, and counters."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.model.origins.drawing import Event, column, origin_rows
from tests.support.traces import read
from torch_tb_profiler.analyses.timeline.counters import all_series
from torch_tb_profiler.analyses.tracks.tracks import tracks, work_tracks
from torch_tb_profiler.model.devices import stream_ids
from torch_tb_profiler.model.kinds import Kind, event_kinds
from torch_tb_profiler.model.schedule.items import device_items
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.views.trace import words

LAUNCH = {"ph": "X", "cat": "cuda_runtime", "name": "cudaGraphLaunch", "pid": 1, "tid": 1, "ts": 0, "dur": 4}


def node(category: str, name: str, ts: float, number: int, lane: int = 7, **args: Any) -> Event:
    args = {"device": 0, "stream": lane, "correlation": 900, "graph id": 7, "graph node id": number} | args
    return {"ph": "X", "cat": category, "name": name, "pid": 0, "tid": lane, "ts": ts, "dur": 5, "args": args}


def graph(*nodes: Event) -> Trace:
    return read([LAUNCH | {"args": {"correlation": 900}}, node("kernel", "gemm", 10, 0), *nodes])


def test_host_and_event_nodes_are_named_and_are_no_work_of_the_device() -> None:
    trace = graph(
        node("graph_event_node", "EventRecord", 16, 1),
        node("graph_host_node", "HostNode: notify", 20, 2, correlation=0),
    )
    assert event_kinds(trace).tolist() == [Kind.RUNTIME, Kind.KERNEL, Kind.GRAPH_EVENT, Kind.GRAPH_HOST]
    table = tracks(trace)
    named = {track.name: (track.kind, track.role, track.device, track.slices) for track in table.tracks}
    assert named == {
        "thread 1": ("thread", "", None, 1),
        "stream 7": ("stream", "compute", 0, 1),
        "stream 7, graph nodes": ("stream", "graph", 0, 2),
    }
    assert [table.tracks[id].name for id in work_tracks(trace)] == ["stream 7"]
    assert column(origin_rows(trace), "name") == ["gemm"]
    texts = [str(words.event(kind, None, None, None)) for kind in (Kind.GRAPH_HOST, Kind.GRAPH_EVENT)]
    assert "Host function that a CUDA graph calls" in texts[0]
    assert "Event that a CUDA graph records" in texts[1]


def test_work_on_a_lane_has_the_stream_that_it_ran_on() -> None:
    """On the lane both overlap; on their streams neither waits for the other."""
    trace = read(
        [
            LAUNCH | {"args": {"correlation": 900}},
            {"ph": "M", "name": "thread_name", "ts": 0, "pid": 0, "tid": 60, "args": {"name": "tp"}},
            node("kernel", "a", 10, 0, lane=60, original_stream=23),
            node("kernel", "b", 12, 1, lane=60, original_stream=24),
            node("kernel", "c", 30, 2, annotated_stream=60),
        ]
    )
    kernels = np.flatnonzero(event_kinds(trace) == Kind.KERNEL)
    assert stream_ids(trace)[kernels].tolist() == [23, 24, 7]  # a lane that was asked for moves nothing
    assert sorted(device_items(trace).stream.tolist()) == [7, 23, 24]
    names = [track.name for track in tracks(trace).tracks if track.kind == "stream"]
    assert sorted(names) == ["stream 7", "tp"]


def test_counters_of_a_gpu_lie_with_its_streams() -> None:
    def sample(name: str, ts: float, value: float) -> Event:
        return {"ph": "C", "name": name, "pid": "GPU 0 Counters", "ts": ts, "args": {"": value}}

    trace = graph(sample("Power (W)", 5, 400.0), sample("Power (W)", 9, 410.5), sample("Temperature (C)", 5, 61.0))
    found = {each.name: each for each in all_series(trace) if each.role == ""}
    assert {name: each.values.tolist() for name, each in found.items()} == {
        "Power (W)": [400.0, 410.5],
        "Temperature (C)": [61.0],
    }
    for each in found.values():
        assert each.device == 0
        assert each.group is not None
        assert tracks(trace).groups[each.group].device == 0
