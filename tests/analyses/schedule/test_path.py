"""The times of the path are summed part by part; all parts are those of the whole path."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.page import draw_training
from tests.support.traces import read_bytes
from torch_tb_profiler.analyses.schedule import path as module
from torch_tb_profiler.analyses.schedule.path import PATH_CATEGORIES, critical_path, path_segments, path_times


@pytest.mark.parametrize("at_once", [1, 3, 1000])
def test_the_times_of_the_path_are_the_sums_of_its_segments(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = read_bytes(draw_training())
    monkeypatch.setattr(module, "_SEGMENTS_AT_ONCE", at_once)
    assert (critical_path(trace).kind == module.PathSegmentKind.HOST).sum() > 3
    segments, times = path_segments(trace), path_times(trace)
    sums = np.zeros((len(times), len(PATH_CATEGORIES)), np.int64)
    np.add.at(sums, (segments.step, segments.category), segments.end - segments.begin)
    assert times.tolist() == sums.tolist()
    assert len(times) > 1 and (times.sum(axis=1) > 0).all()
