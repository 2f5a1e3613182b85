from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.traces import draw
from torch_tb_profiler.base.memo import Memo
from torch_tb_profiler.model.calls.calltree import call_tree, running_slices


@pytest.mark.parametrize("since_ns", [0, 2**61])
def test_what_runs_changes_at_every_begin_and_end_and_at_one_instant_from_the_inside_out(since_ns: int) -> None:
    trace = draw("""
    host  cpu_op  outer   0  30
    host  cpu_op  inner   0  10
    host  cpu_op  next   10  20
    """)
    later = replace(trace.events, start=trace.events.start + since_ns)
    trace = replace(trace, events=later, _memo=Memo())
    tree = call_tree(trace)
    times, running = running_slices(trace, tree, tree.rows)
    outer, inner, following, nothing = 0, 1, 2, -1
    assert [time - since_ns for time in times.tolist()] == [0, 0, 10_000, 10_000, 30_000, 30_000]
    assert running.tolist() == [nothing, outer, inner, outer, following, outer, nothing]
