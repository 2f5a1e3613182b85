"""The average step, and the steps that are far from all others."""

from __future__ import annotations

import pytest

from tests.support.traces import draw
from torch_tb_profiler.analyses.shared.breakdown import average_step, breakdown


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


def pipeline(lag: int, first_work: int = 90, first_host: int = 100) -> str:
    """Host steps of 100 us, each of which launches 90 us of work that ends `lag` after it."""
    rows = []
    for number in range(3):
        start = 100 * number + (first_host - 100 if number else 0)
        host, work = (100, 90) if number else (first_host, first_work)
        rows += [
            f"host user_annotation ProfilerStep#{number} {start} {host}",
            f"host cuda_runtime cudaLaunchKernel {start + 1} 2 correlation={number + 1}",
            f"gpu0 kernel gemm {start + host + lag - work} {work} correlation={number + 1} stream=7",
        ]
    return "\n".join(rows)


@pytest.mark.parametrize(
    ("picture", "filling", "typical"),
    [
        (pipeline(60), True, 100),  # 160, 100, 100
        (pipeline(15), False, 315 / 3),  # as long as the others, about
        (pipeline(60, first_work=150), False, 360 / 3),  # the device has more to do
        (pipeline(60, first_host=150), False, 410 / 3),  # the host takes longer
        (steps(160, 100, 100), False, 360 / 3),  # there is no device
    ],
)
def test_the_start_of_the_pipeline_is_no_slow_step(picture: str, filling: bool, typical: float) -> None:
    average = average_step(breakdown(draw(picture)))
    assert average is not None
    assert (average.filling, average.outliers) == (filling, ())
    assert average.typical == pytest.approx(1000 * typical, abs=1000)
