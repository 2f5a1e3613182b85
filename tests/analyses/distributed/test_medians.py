"""Medians of groups, compared with numpy's."""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.analyses.distributed.medians import (
    group_medians,
    lower_medians,
    medians_of_others,
    medians_without_each,
    middle_means,
    others_medians,
)
from torch_tb_profiler.model.trace import ABSENT


def test_middle_means_are_medians_rounded_towards_zero() -> None:
    rng = np.random.default_rng(3)
    which = np.append(np.arange(30), rng.integers(0, 30, 200))
    values = rng.integers(-(10**15), 10**15, len(which))
    medians = middle_means(values, which, np.bincount(which))
    assert medians.tolist() == [int(np.median(values[which == number])) for number in range(30)]


def test_medians_of_groups_may_be_halves() -> None:
    which, values = np.array([1, 0, 1, 0, 1]), np.array([7, 2, -4, 5, 1])
    assert group_medians(values, which, np.bincount(which)).tolist() == [3.5, 1]


def test_the_median_without_each_value_is_that_of_the_others() -> None:
    rng = np.random.default_rng(3)
    for size in (2, 3, 4, 7, 8):
        values = rng.integers(-5, 5, size) / 2  # with equal ones, in no order
        alone = [np.median(np.delete(values, i)) for i in range(size)]
        assert medians_without_each(values).tolist() == alone


def test_medians_of_others_leave_each_value_out_in_turn() -> None:
    """The mean of two middle values is rounded down."""
    rng = np.random.default_rng(3)
    groups = [np.sort(rng.integers(-1_000, 1_000, size)) for size in (2, 3, 4, 5, 8, 9)]
    sizes = np.array([len(values) for values in groups])
    begins = np.repeat(np.cumsum(sizes) - sizes, sizes)
    position = np.arange(sizes.sum()) - begins
    medians = medians_of_others(np.concatenate(groups), begins, np.repeat(sizes, sizes), position)
    alone = [np.median(np.delete(values, i)) for values in groups for i in range(len(values))]
    assert medians.tolist() == np.floor(alone).tolist()


def test_the_median_of_the_others_of_a_group_is_the_value_itself_where_it_is_alone() -> None:
    which, values = np.array([2, 0, 2, 1, 2, 2]), np.array([7, 5, 1, 9, 4, 4])
    assert others_medians(which, values, 4).tolist() == [4, 5, 4, 9, 4, 4]


def test_the_lower_of_two_middle_values_is_the_lower_median() -> None:
    which, values = np.array([0, 2, 0, 2, 2, 0, 0]), np.array([4, 9, 1, 7, 8, 3, 2])
    assert lower_medians(values, which, 3).tolist() == [2, ABSENT, 8]
