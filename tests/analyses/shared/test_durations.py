"""The spread of durations, and which of them stand out."""

from __future__ import annotations

import numpy as np
import pytest

from torch_tb_profiler.analyses.shared.durations import HISTOGRAM_BINS, MAX_OUTLIERS, duration_distribution
from torch_tb_profiler.model.trace import Int64


def durations(last: int, count: int = 8) -> Int64:
    """Return 40, 80, ... and a last one. Eight have quartiles 110 and 250: the fence is 250 + 3 * 140 = 670."""
    return np.array([*(40 * (i + 1) for i in range(count - 1)), last], np.int64)


@pytest.mark.parametrize(("last", "far"), [(670, 0), (671, 1)])
def test_beyond_three_interquartile_ranges_a_value_stands_out(last: int, far: int) -> None:
    found = duration_distribution(durations(last))
    assert found.far_out == far
    assert found.outliers.tolist() == [7] * far


def test_of_few_values_none_stands_out() -> None:
    assert duration_distribution(durations(10**6, 7)).far_out == 0
    assert duration_distribution(durations(10**6, 8)).far_out == 1


def test_bins_span_all_but_the_outliers_which_lie_in_the_last() -> None:
    found = duration_distribution(durations(10**6))
    assert (found.edges[0], found.edges[-1], len(found.edges)) == (40, 280, HISTOGRAM_BINS + 1)
    assert found.counts.sum() == 8
    assert found.counts[-1] == 2  # 280 and the outlier
    assert found.median == 180
    assert found.p95 == pytest.approx(280 + 0.65 * (10**6 - 280))
    without = duration_distribution(durations(670))
    assert without.edges[-1] == 670


def test_outliers_come_longest_first_and_are_not_all_listed() -> None:
    values = np.array([10] * 200 + list(range(1000, 1030)) + [1029], np.int64)
    found = duration_distribution(values)
    assert found.far_out == 31
    assert found.outliers.tolist() == [229, 230, *range(228, 210, -1)]
    assert len(found.outliers) == MAX_OUTLIERS


def test_one_value_is_a_distribution() -> None:
    found = duration_distribution(np.array([5], np.int64))
    assert (found.counts.sum(), found.median, found.edges[0], found.edges[-1]) == (1, 5, 5, 6)
