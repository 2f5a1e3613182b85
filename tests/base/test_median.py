"""The value in the middle is numpy's."""

from __future__ import annotations

import math

import numpy as np
import pytest

from torch_tb_profiler.base.arrays import median


@pytest.mark.parametrize("count", range(1, 12))
def test_the_middle_of_numbers_in_any_order(count: int) -> None:
    whole = np.random.default_rng(count).integers(-(2**62), 2**62, count)
    for values in (whole, whole / 3, np.sort(whole)[::-1]):
        assert median(values) == np.median(values)
    assert median(whole.tolist()) == np.median(whole)


def test_none_have_no_middle() -> None:
    assert math.isnan(median([]))


def test_the_given_order_stays() -> None:
    values = np.array([3, 1, 2])
    assert median(values) == 2 and values.tolist() == [3, 1, 2]
