"""Typical steps, which are averaged, and the odd ones, which are far from all others."""

from __future__ import annotations

import pytest

from tests.support.traces import draw
from torch_tb_profiler.analyses.shared.breakdown import breakdown
from torch_tb_profiler.analyses.shared.typical_steps import average_step, classify_steps, odd_durations


def steps(*durations: int) -> str:
    """Return a step of so many us each, one after the other."""
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
        ((160, 100, 101), (0,), 100.5),  # the others agree
        ((160, 100), (), 130),  # nothing is typical of two steps
        ((346, 10, 10, 11, 10, 310), (0, 5), 10.25),  # the first one compiles, the last one saves a checkpoint
        ((100, 160, 160, 100), (), 130),  # two kinds of steps
        ((119, 100, 101, 99), (), 419 / 4),  # not far enough
        ((100, 140, 80, 120, 150, 90), (), 680 / 6),  # all of them vary
        ((200, 100, 200, 100, 200, 100, 200, 100, 100), (), 1300 / 9),  # the first one is as long as others
        ((100, 100, 200, 200), (), 150),  # two kinds of steps
        ((100, 100, 100, 100, 200, 200), (), 800 / 6),  # a third of them is no exception
        ((90, 95, 100, 100, 105, 110, 130), (6,), 100),  # six times the median deviation
        ((90, 95, 100, 100, 105, 110, 124), (), 724 / 7),  # less than five times
        ((160, 250, 160, 345, 161, 250, 160), (3,), 1141 / 6),  # three differ, one by more than the others do
        ((160, 250, 160, 335, 161, 250, 160), (), 1476 / 7),  # not further from 250 than that is from 160
        ((100, 240, 100, 101, 100, 47), (1,), 448 / 5),  # one longer and one shorter, neither of which recurs
        ((100, 170, 100, 101, 100, 30), (), 601 / 6),  # the shorter one is as far
        ((471, 471, 217, 472, 1257, 217, 471, 471), (4,), 2790 / 7),  # one beside steps of two kinds
        ((471, 471, 217, 472, 1257, 217, 471, 1250, 471), (4, 7), 2790 / 7),  # two, of which none hides the other
        ((100, 160, 100, 101, 100, 20), (5,), 561 / 5),  # shorter by more than the other one is longer
        ((100, 100, 200, 100, 300, 101, 400), (), 1301 / 7),  # those that differ do so among themselves
    ],
)
def test_outliers(durations: tuple[int, ...], outliers: tuple[int, ...], typical: float) -> None:
    average = average_step(draw(steps(*durations)))
    assert average is not None
    assert average.odd == outliers
    assert average.duration == pytest.approx(1000 * typical, abs=1000)


def pipeline(lag: int, first_work: int = 90, first_host: int = 100) -> str:
    """Draw host steps of 100 us, each of which launches 90 us of work that ends `lag` after it."""
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
        (pipeline(60, first_work=150), False, 100),  # the device has more to do: the step is odd
        (pipeline(60, first_host=150), False, 100),  # the host takes longer
        (steps(160, 100, 100), False, 100),  # there is no device
    ],
)
def test_the_start_of_the_pipeline_is_no_slow_step(picture: str, filling: bool, typical: float) -> None:
    average = average_step(draw(picture))
    assert average is not None
    assert average.filling == filling
    assert average.duration == pytest.approx(1000 * typical, abs=1000)


def test_a_step_is_typical_odd_filling_or_incomplete() -> None:
    times = breakdown(draw(steps(346, 10, 10, 11, 10, 310)))
    kinds = classify_steps(times)
    assert kinds.odd.tolist() == [True, False, False, False, False, True]
    assert (kinds.typical ^ kinds.odd == times.steps.complete).all()
    assert not odd_durations(times.durations[:0]).any()
