"""The times of the path are summed part by part; all parts are those of the whole path."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from tests.support.page import draw_training
from tests.support.traces import draw, read_bytes
from torch_tb_profiler.analyses.schedule import causes
from torch_tb_profiler.analyses.schedule import path as module
from torch_tb_profiler.analyses.schedule.path import PATH_CATEGORIES, critical_path, path_segments, path_times
from torch_tb_profiler.model.schedule.schedule import schedule


@pytest.mark.parametrize("at_once", [1, 3, 1000])
def test_the_times_of_the_path_are_the_sums_of_its_segments(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = read_bytes(draw_training())
    monkeypatch.setattr(causes, "_WINDOWS_AT_ONCE", at_once)
    assert (critical_path(trace).kind == module.PathSegmentKind.HOST).sum() > 3
    segments, times = path_segments(trace), path_times(trace)
    sums = np.zeros((len(times), len(PATH_CATEGORIES)), np.int64)
    np.add.at(sums, (segments.step, segments.category), segments.end - segments.begin)
    assert times.tolist() == sums.tolist()
    assert len(times) > 1 and (times.sum(axis=1) > 0).all()


def test_a_path_ends_though_an_item_releases_what_launches_it(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = draw("""
    host user_annotation ProfilerStep#1 0 100
    host cuda_runtime cudaLaunchKernel 10 5 correlation=1
    gpu0 kernel k 20 50 correlation=1
    host cuda_runtime cudaDeviceSynchronize 30 45
    """)
    graph = schedule(trace)
    point = graph.submission[:1]
    edge = msgspec.structs.replace(
        graph.edges,
        target=point,
        item=np.zeros(1, np.int64),
        point=np.full(1, -1),
        weight=np.zeros(1, np.int64),
        call=np.zeros(1, np.int32),
        binds=np.ones(1, np.bool_),
    )
    monkeypatch.setattr(module, "schedule", lambda _: msgspec.structs.replace(graph, edges=edge))
    path = module.path_between(trace, 0, 100_000)
    assert int((path.end - path.begin).sum()) == 100_000
