"""What the file itself records, as the overview lists it."""

from __future__ import annotations

from unittest.mock import PropertyMock, patch

from tests.support.traces import draw
from torch_tb_profiler.analyses.shared.breakdown import Breakdown, breakdown
from torch_tb_profiler.views.overview.recorded import step_list

COUNT = 50
STEPS = "\n".join(f"host user_annotation ProfilerStep#{n} {100 * n} {60 + n % 30}" for n in range(COUNT))


def test_steps_are_listed_with_their_times_which_are_computed_once() -> None:
    """Not once for each step: hundreds of thousands of short steps took a quarter of an hour."""
    times = breakdown(draw(STEPS))
    durations = times.durations
    with patch.object(Breakdown, "durations", new_callable=PropertyMock, return_value=durations) as asked:
        steps = step_list(times)
    assert asked.call_count == 1
    assert [(each.name, each.start_ns, each.duration_ns) for each in steps] == [
        (str(n), 100_000 * n, 1000 * (60 + n % 30)) for n in range(COUNT)
    ]
    assert all(each.categories.other == each.duration_ns for each in steps)
