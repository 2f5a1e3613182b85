"""Schedules of real traces: the recorded times come out to the nanosecond, and most starts have a reason."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.corpus import real_traces
from torch_tb_profiler.model.schedule.replay import replay
from torch_tb_profiler.model.schedule.schedule import schedule

pytestmark = real_traces.MARKS

EXPLAINED = 0.985


def test_every_schedule_gives_the_recorded_times(corpus: Path) -> None:
    items, explained = 0, 0.0
    for path, trace in real_traces.whole_files(corpus):
        graph = schedule(trace)
        duration = graph.items.end - graph.items.start
        again = replay(trace, graph.step[None], duration[None])
        assert np.array_equal(again.points[0], graph.points.time), path
        assert np.array_equal(again.ends[0], graph.items.end), path
        items += len(graph.items)
        explained += len(graph.items) * (graph.explained_share or 0.0)
    assert items > 100_000
    assert explained / items > EXPLAINED
