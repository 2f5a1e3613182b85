"""Our median, quantiles and distinct values equal those of numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from torch_tb_profiler.base.arrays import cells_of_rows, distinct, distinct_numbers, median, quantile


@pytest.mark.parametrize("count", range(1, 12))
def test_the_median_is_that_of_numpy(count: int) -> None:
    numbers = np.random.default_rng(count).integers(-(2**62), 2**62, count)
    for values in (numbers, numbers / 3, np.sort(numbers)[::-1]):
        assert median(values) == np.median(values)
    assert median(numbers.tolist()) == np.median(numbers)


@pytest.mark.parametrize("count", range(1, 30))
def test_quantiles_are_those_of_numpy(count: int) -> None:
    numbers = np.random.default_rng(count).integers(-(2**40), 2**40, count)
    for share in (0, 0.05, 0.25, 0.5, 0.9, 1):
        assert quantile(numbers, share) == np.quantile(numbers, share)


def test_the_median_of_nothing_is_nan() -> None:
    assert math.isnan(median([]))


def test_the_input_is_not_reordered() -> None:
    values = np.array([3, 1, 2])
    assert median(values) == 2 and values.tolist() == [3, 1, 2]


def test_distinct_numbers_ascend_whatever_their_range() -> None:
    values = np.array([7, -3, 7, 2**62, -(2**62), -3], np.int64)
    assert distinct(values).tolist() == distinct_numbers(values) == [-(2**62), -3, 7, 2**62]
    assert distinct(values[:0]).dtype == np.int64 and distinct_numbers(values[:0]) == []
    assert distinct(np.array([3, 1, 3], np.int32)).dtype == np.int32


def test_a_row_without_a_cell_has_the_value_for_that() -> None:
    rows, cells = np.array([1, 4, 6], np.int32), np.array([10, 40, 60], np.int32)
    wanted = np.array([6, 0, 4, 7, 1, 5], np.int32)
    assert cells_of_rows(rows, cells, wanted, -1).tolist() == [60, -1, 40, -1, 10, -1]
    assert cells_of_rows(rows[:0], cells[:0], wanted, -1).tolist() == [-1] * 6
    assert cells_of_rows(rows, cells, wanted[:0], -1).tolist() == []
