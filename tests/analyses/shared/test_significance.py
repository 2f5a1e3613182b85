from __future__ import annotations

import numpy as np
import pytest

from torch_tb_profiler.analyses.shared.significance import Rules, adjust, mean_interval, weigh
from torch_tb_profiler.analyses.shared.student import student_two_sided

RULES = Rules(step=1000.0, min_effect=0.02, resolution=1e-9)


# From tables of Student's distribution (two-sided).
@pytest.mark.parametrize(
    ("t", "freedom", "p"),
    [(12.706, 1, 0.05), (4.303, 2, 0.05), (2.228, 10, 0.05), (3.169, 10, 0.01), (1.96, 1e6, 0.05), (0, 5, 1)],
)
def test_student(t: float, freedom: float, p: float) -> None:
    for sign in (1, -1):
        assert student_two_sided(np.array([sign * t]), np.array([float(freedom)]))[0] == pytest.approx(p, rel=1e-3)


def test_far_tails_are_small_and_not_zero_by_mistake() -> None:
    p = student_two_sided(np.array([30.0, 100.0]), np.array([18.0, 18.0]))
    assert (p < 1e-15).all() and (p > 0).all()


def test_benjamini_and_hochberg() -> None:
    assert adjust(np.array([0.01, 0.04, 0.03, 0.005])).tolist() == pytest.approx([0.02, 0.04, 0.04, 0.02])
    assert adjust(np.array([])).tolist() == []


@pytest.mark.parametrize("steps", [3, 5, 10, 30])
def test_intervals_hold_the_truth_nineteen_times_in_twenty(steps: int) -> None:
    rng = np.random.default_rng(steps)
    base, candidate = 1000 + 30 * rng.standard_normal((2, 2000, steps))
    evidence = weigh(base, candidate, RULES)
    covered = ((evidence.low <= 0) & (evidence.high >= 0)).mean()
    assert 0.93 <= covered <= 0.995


@pytest.mark.slow
def test_many_rows_without_a_difference_raise_no_alarm() -> None:
    rng = np.random.default_rng(1)
    alarms = 0
    for _ in range(100):
        base, candidate = 100 + 10 * rng.standard_normal((2, 200, 6))
        alarms += bool(weigh(base, candidate, RULES).significant.any())
    assert alarms <= 5


def test_small_and_tiny_changes_do_not_count() -> None:
    base = np.array([[1000.0] * 5, [500.0] * 5, [0.4] * 5])
    candidate = np.array([[1010.0] * 5, [550.0] * 5, [0.8] * 5])
    evidence = weigh(base, candidate, RULES)
    assert evidence.significant.tolist() == [False, True, False]
    assert np.isnan(evidence.q[2])


def test_a_tick_of_the_clock_is_no_certainty() -> None:
    base, candidate = np.array([[10.0, 10.0]]), np.array([[11.0, 11.0]])
    assert weigh(base, candidate, RULES).significant.all()
    assert not weigh(base, candidate, Rules(1000.0, 0.02, 1.0)).significant.any()


def test_mean_interval() -> None:
    low, high = mean_interval(np.array([10.0, 12.0, 11.0, 9.0])) or (0, 0)
    assert low < 10.5 < high and high - low < 8
    assert mean_interval(np.array([1.0])) is None
