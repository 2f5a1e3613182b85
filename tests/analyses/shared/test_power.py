"""How often a change is found, and how often one is found that is none: steps simulated with known truth."""

from __future__ import annotations

import numpy as np
import pytest

from torch_tb_profiler.analyses.shared.significance import ChangeRules, compare_steps
from torch_tb_profiler.analyses.shared.step_means import autocorrelation, autocorrelation_error
from torch_tb_profiler.analyses.shared.typical_steps import odd_durations
from torch_tb_profiler.model.trace import Bool, Float64

RULES = ChangeRules(step=100.0, min_effect=0.02, resolution=1e-9)

DRAWS = 1000


def steps(rng: np.random.Generator, count: int, rho: float = 0.0, noise: float = 1.0) -> Float64:
    """Return float64[DRAWS, count] of 100 ms, with a scatter in percent and an autocorrelation."""
    values = rng.standard_normal((DRAWS, count))
    for step in range(1, count):
        values[:, step] = rho * values[:, step - 1] + np.sqrt(1 - rho**2) * values[:, step]
    return 100 + noise * values


def drop_odd_steps(values: Float64) -> Float64:
    """Drop the steps that are odd in the mean of all draws, as a trace leaves them out."""
    return values[:, ~odd_durations(values.mean(axis=0))]


def is_changed(base: Float64, candidate: Float64, rules: ChangeRules = RULES) -> Bool:
    return compare_steps(drop_odd_steps(base), drop_odd_steps(candidate), rules, alone=len(base)).changed


def test_a_slow_first_step_does_not_hide_30_percent() -> None:
    base = np.array([160, 100, 100.5, 101, 99])
    assert odd_durations(base).tolist() == [True, False, False, False, False]
    evidence = compare_steps(base[None, 1:], 1.3 * base[None, 1:], RULES, alone=1)
    assert evidence.changed.all() and evidence.low[0] > 25


@pytest.mark.parametrize(("count", "power"), [(3, 0.95), (5, 0.99)])
def test_20_percent_are_found_after_a_slow_first_step(count: int, power: float) -> None:
    rng = np.random.default_rng(count)
    base, candidate, same = (steps(rng, count) for _ in range(3))
    for values in (base, candidate, same):
        values[:, 0] *= 1.6
    assert is_changed(base, 1.2 * candidate).mean() >= power
    assert is_changed(base, same).mean() <= 0.045


@pytest.mark.parametrize("count", [3, 4, 5, 8, 12, 30])
def test_false_alarms_are_one_in_twenty_at_most(count: int) -> None:
    rng = np.random.default_rng(count)
    rules = ChangeRules(step=100.0, min_effect=0.0, resolution=1e-9)
    assert is_changed(steps(rng, count, noise=5), steps(rng, count, noise=5), rules).mean() <= 0.06


@pytest.mark.parametrize("counts", [(5, 5), (4, 6), (8, 8), (12, 12), (30, 30), (3, 300)])
def test_independent_steps_hardly_ever_show_a_correlation(counts: tuple[int, int]) -> None:
    """Estimates of 0.2 and more are common among few of them: they aren't two standard errors away from none."""
    rng = np.random.default_rng(counts[1])
    rho = autocorrelation([steps(rng, count) for count in counts])
    assert (rho >= np.maximum(2 * autocorrelation_error(counts), 0.2)).mean() <= 0.02
    assert ((rho >= 0.2).mean() > 0.1) == (sum(counts) < 30)
    alike = autocorrelation([steps(rng, count, rho=0.9) for count in counts])
    assert ((alike >= 2 * autocorrelation_error(counts)).mean() >= 0.7) == (min(counts) >= 12 or max(counts) > 99)


@pytest.mark.parametrize("at", [2, 4, 9])
def test_one_long_step_anywhere_hides_nothing(at: int) -> None:
    rng = np.random.default_rng(at)
    base, candidate = steps(rng, 10), 1.05 * steps(rng, 10)
    base[:, at] *= 1.8
    assert is_changed(base, candidate).mean() >= 0.95


def test_a_long_step_among_five_hides_nothing() -> None:
    base, slower = np.array([[100, 101, 180, 99, 100.5]]), 1.2 * np.array([[100, 101, 102, 99, 100.5]])
    assert is_changed(base, slower).all()
    assert not compare_steps(base, slower, RULES, alone=1).changed.any()


@pytest.mark.parametrize(("count", "alarms"), [(10, 0.15), (20, 0.10), (50, 0.09)])
def test_steps_that_resemble_the_one_before_count_as_fewer(count: int, alarms: float) -> None:
    rng = np.random.default_rng(count)
    rules = ChangeRules(step=100.0, min_effect=0.0, resolution=1e-9)
    base, candidate = steps(rng, count, rho=0.7), steps(rng, count, rho=0.7)
    assert is_changed(base, candidate, rules).mean() <= alarms
    assert np.median(autocorrelation([base, candidate])) > 0.5
    assert np.median(autocorrelation([steps(rng, count), steps(rng, count)])) < 0.15


def recordings(rng: np.random.Generator, count: int, between: float) -> Float64:
    """Draw ten steps of each recording, whose means differ by `between` percent."""
    each = [steps(rng, 10) + between * rng.standard_normal((DRAWS, 1)) for _ in range(count)]
    return np.concatenate(each, axis=1)


@pytest.mark.parametrize(("base", "candidate"), [(2, 2), (3, 3), (5, 2), (1, 4)])
def test_recordings_that_differ_among_themselves_are_no_change(base: int, candidate: int) -> None:
    rng = np.random.default_rng(base)
    counts = ([10] * base, [10] * candidate)
    rules = ChangeRules(step=100.0, min_effect=0.0, resolution=1e-9, recordings=counts)
    sides = recordings(rng, base, 5), recordings(rng, candidate, 5)
    assert compare_steps(*sides, rules, alone=DRAWS).changed.mean() <= 0.085


def test_five_recordings_a_side_find_20_percent() -> None:
    rng = np.random.default_rng(0)
    rules = ChangeRules(step=100.0, min_effect=0.02, resolution=1e-9, recordings=([10] * 5, [10] * 5))
    base, candidate = recordings(rng, 5, 5), 1.2 * recordings(rng, 5, 5)
    assert compare_steps(base, candidate, rules, alone=DRAWS).changed.mean() >= 0.95


def test_one_recording_each_of_one_run_proves_no_change() -> None:
    rng = np.random.default_rng(0)
    rules = ChangeRules(step=100.0, min_effect=0.02, resolution=1e-9, recordings=([10], [10]), one_run=True)
    base = steps(rng, 10)
    evidence = compare_steps(base, 1.2 * steps(rng, 10), rules, alone=DRAWS)
    assert not evidence.changed.any() and (evidence.low > 0).all()
    two = ChangeRules(step=100.0, min_effect=0.02, resolution=1e-9, recordings=([5, 5], [5, 5]), one_run=True)
    assert compare_steps(base, 1.2 * steps(rng, 10), two, alone=DRAWS).changed.mean() > 0.9
