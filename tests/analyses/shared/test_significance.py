from __future__ import annotations

import numpy as np
import pytest

from torch_tb_profiler.analyses.shared.significance import (
    ChangeRules,
    adjust_p_values,
    compare_steps,
    student_two_sided,
    typical_interval,
)

RULES = ChangeRules(step=1000.0, min_effect=0.02, resolution=1e-9)


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
    assert adjust_p_values(np.array([0.01, 0.04, 0.03, 0.005])).tolist() == pytest.approx([0.02, 0.04, 0.04, 0.02])
    assert adjust_p_values(np.array([])).tolist() == []


@pytest.mark.parametrize("steps", [3, 5, 10, 30])
def test_intervals_hold_the_truth_nineteen_times_in_twenty(steps: int) -> None:
    rng = np.random.default_rng(steps)
    base, candidate = 1000 + 30 * rng.standard_normal((2, 2000, steps))
    evidence = compare_steps(base, candidate, RULES)
    covered = ((evidence.low <= 0) & (evidence.high >= 0)).mean()
    assert 0.93 <= covered <= 0.995


@pytest.mark.slow
def test_many_rows_without_a_difference_raise_no_alarm() -> None:
    rng = np.random.default_rng(1)
    alarms = 0
    for _ in range(100):
        base, candidate = 100 + 10 * rng.standard_normal((2, 200, 6))
        alarms += bool(compare_steps(base, candidate, RULES).changed.any())
    assert alarms <= 5


def test_small_and_tiny_changes_do_not_count() -> None:
    base = np.array([[1000.0] * 5, [500.0] * 5, [0.4] * 5])
    candidate = np.array([[1010.0] * 5, [550.0] * 5, [0.8] * 5])
    evidence = compare_steps(base, candidate, RULES)
    assert evidence.changed.tolist() == [False, True, False]
    assert np.isnan(evidence.q[2])


def test_a_tick_of_the_clock_is_no_certainty() -> None:
    base, candidate = np.array([[10.0, 10.0]]), np.array([[11.0, 11.0]])
    assert compare_steps(base, candidate, RULES).changed.all()
    assert not compare_steps(base, candidate, ChangeRules(1000.0, 0.02, 1.0)).changed.any()


def test_interval_of_a_typical_step() -> None:
    low, high = typical_interval([np.array([10.0, 12.0, 11.0, 9.0])]) or (0, 0)
    assert low < 10.5 < high and high - low < 8
    assert typical_interval([np.array([1.0])]) is None
    assert typical_interval([]) is None


def test_unchanged_needs_the_whole_interval_within_the_least_effect() -> None:
    base = np.array([[1000.0, 1002.0, 998.0, 1001.0, 999.0]])
    evidence = compare_steps(base, base + 5, RULES)
    assert evidence.unchanged.all() and not evidence.changed.any()
    assert -20 <= evidence.low[0] and evidence.high[0] <= 20
    for by in (15.0, -15.0):  # one end of the interval lies within
        noisy = compare_steps(base, (base - 1000) * 5 + 1000 + by, RULES)
        assert not noisy.unchanged.any() and not noisy.changed.any()


def test_a_rare_long_call_is_not_unchanged() -> None:
    base, candidate = np.zeros((1, 10)), np.zeros((1, 10))
    candidate[0, 4] = 900.0
    evidence = compare_steps(base, candidate, RULES)
    assert not evidence.unchanged.any() and not evidence.changed.any()


def test_as_many_steps_as_needed_tell_four_times_in_five() -> None:
    rng = np.random.default_rng(3)
    few = compare_steps(
        1000 + 30 * rng.standard_normal((400, 4)), 1025 + 30 * rng.standard_normal((400, 4)), RULES
    )
    needed = int(np.median(few.needed[np.abs(few.delta - 25) < 5]))
    many = compare_steps(
        1000 + 30 * rng.standard_normal((400, needed)), 1025 + 30 * rng.standard_normal((400, needed)), RULES
    )
    assert 10 < needed < 60
    assert 0.6 <= (many.low > 0).mean() <= 0.97


def test_where_no_number_of_steps_would_tell() -> None:
    base = 1000 + 300 * np.random.default_rng(0).standard_normal((1, 4))
    assert np.isinf(compare_steps(base, base.mean() + (base - base.mean())[:, ::-1] + 20, RULES).needed[0])


VARIES = [937.0, 76, 1167, 70, 1520, 375, 967, 263, 635, 499]
"""ms of an operator on a busy machine."""


@pytest.mark.parametrize("added", [True, False])
def test_what_one_side_never_does_is_a_change_however_much_it_varies(added: bool) -> None:
    """Among rows that the correction for many takes into account."""
    none, some = np.zeros(9), np.array(VARIES)
    base, candidate = (none, some) if added else (some, none)
    noise = np.random.default_rng(3).normal(500, 300, (60, 19))
    evidence = compare_steps(
        np.vstack((base, noise[:, : len(base)])), np.vstack((candidate, noise[:, -len(candidate) :])), RULES
    )
    assert evidence.changed[0] and not evidence.changed[1:].any()
    assert evidence.low[0] >= 0 if added else evidence.high[0] <= 0


def test_a_single_call_on_the_other_side_is_no_certainty() -> None:
    """Nor are so few steps that one way in ten of sharing them out has it."""
    some = np.array([VARIES])
    once = np.zeros((1, 9))
    once[0, 3] = 1.0
    assert compare_steps(np.zeros((1, 9)), some, RULES).q[0] < 1e-4 < compare_steps(once, some, RULES).q[0]
    assert compare_steps(np.zeros((1, 3)), some[:, :3], RULES).q[0] == pytest.approx(0.1)


def test_a_step_without_it_is_no_certainty_either() -> None:
    none, some = np.zeros((1, 9)), np.array([[0.0, *VARIES]])
    assert compare_steps(none, some, RULES).q[0] > 1e-4 < compare_steps(some, none, RULES).q[0]


@pytest.mark.parametrize("added", [True, False])
def test_its_interval_ends_at_zero_and_is_no_doubt(added: bool) -> None:
    none, some = np.zeros((1, 9)), np.array([[1.0, 1, 1, 900, 950, 1000]])
    evidence = compare_steps(none, some, RULES) if added else compare_steps(some, none, RULES)
    assert evidence.changed[0]
    assert (evidence.low[0] if added else evidence.high[0]) == 0.0
