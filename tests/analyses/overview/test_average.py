"""The average step, and the steps that are far from all others."""

from __future__ import annotations

import pytest

from tests.support.traces import draw
from torch_tb_profiler.analyses.overview.average import average_step
from torch_tb_profiler.analyses.shared.breakdown import breakdown


def steps(*durations: int) -> str:
    """A step of so many us each, one after the other."""
    starts = [sum(durations[:number]) for number in range(len(durations))]
    rows = zip(starts, durations, strict=True)
    return "\n".join(
        f"host user_annotation ProfilerStep#{number} {start} {us}" for number, (start, us) in enumerate(rows)
    )


@pytest.mark.parametrize(
    ("durations", "outliers", "typical"),
    [
        ((160, 100, 101, 99), (0,), 100),
        ((100, 101, 60, 99, 100), (2,), 100),
        ((100, 101, 180, 99, 100, 190, 100, 100), (2, 5), 100),
        ((160, 100, 101), (), 361 / 3),  # of three steps nothing is typical
        ((119, 100, 101, 99), (), 419 / 4),  # not far enough
        ((100, 140, 80, 120, 150, 90), (), 680 / 6),  # all of them vary
        ((100, 100, 200, 200), (), 150),  # two kinds of steps
        ((100, 100, 100, 100, 200, 200), (), 800 / 6),  # a third of them is no exception
        ((90, 95, 100, 100, 105, 110, 130), (6,), 100),  # six times the median deviation
        ((90, 95, 100, 100, 105, 110, 124), (), 724 / 7),  # less than five times
    ],
)
def test_outliers(durations: tuple[int, ...], outliers: tuple[int, ...], typical: float) -> None:
    average = average_step(breakdown(draw(steps(*durations))))
    assert average is not None
    assert average.outliers == outliers
    assert average.typical == pytest.approx(1000 * typical, abs=1000)
