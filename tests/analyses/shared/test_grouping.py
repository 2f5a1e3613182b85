"""Which calls a filter keeps, and what rows of a table sum to."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.traces import draw
from torch_tb_profiler.analyses.shared.grouping import (
    count_pairs,
    group,
    launch_times,
    order_statistics,
    step_mask,
    thread_mask,
)
from torch_tb_profiler.base.errors import NotFoundError

STEPS = """
host  user_annotation  ProfilerStep#1    0  100
host  user_annotation  ProfilerStep#2  100  100
"""


def test_a_step_has_its_first_instant_and_not_its_last() -> None:
    """So that what happens on the edge of two steps counts once."""
    times = np.array([0, 99_999, 100_000, 199_999, 200_000], np.int64)
    assert step_mask(draw(STEPS), times, "1").tolist() == [True, True, False, False, False]
    assert step_mask(draw(STEPS), times, "2").tolist() == [False, False, True, True, False]
    with pytest.raises(NotFoundError) as caught:
        step_mask(draw(STEPS), times, "3")
    assert caught.value.hint == "steps: 1, 2"


def test_device_work_counts_when_it_was_launched() -> None:
    trace = draw("""
    host  cuda_runtime  launch  10   5  correlation=1
    gpu0  kernel        k       90  10  correlation=1 stream=7
    gpu0  kernel        lonely  95  10  correlation=2 stream=8
    """)
    assert launch_times(trace, np.array([1, 2], np.int32)).tolist() == [0, 85_000]


def test_a_thread_is_named_with_its_process() -> None:
    trace = draw("host cpu_op a 0 1\nhost2 cpu_op b 0 1")
    assert thread_mask(trace, np.array([0, 1], np.int32), "1/2").tolist() == [False, True]
    with pytest.raises(NotFoundError):
        thread_mask(trace, np.array([0], np.int32), "2")


@pytest.mark.parametrize("far", [0, 10**15], ids=["dense keys", "keys far apart"])
def test_groups_stand_in_order_of_their_first_call(far: int) -> None:
    groups = group(np.array([far, 7, far, -1, 7], np.int64), np.array([1, 1, 1, 1, 2], np.int32))
    assert groups.which.tolist() == [0, 1, 0, 2, 3]
    assert groups.first.tolist() == [0, 1, 3, 4]
    assert groups.counts.tolist() == [2, 1, 1, 1]
    assert groups.members(0).tolist() == [0, 2]


@pytest.mark.parametrize("large", [0, 2**60], ids=["small", "beyond float64"])
def test_sums_are_exact(large: int) -> None:
    groups = group(np.array([0, 1, 0], np.int64))
    assert groups.sums(np.array([large + 1, 5, -2], np.int64)).tolist() == [large - 1, 5]


@pytest.mark.parametrize("large", [0, 2**61], ids=["small", "beyond one sort key"])
def test_order_statistics_are_those_of_each_group_alone(large: int) -> None:
    groups = group(np.array([0, 1, 0, 0, 1], np.int64))
    found = order_statistics(groups, np.array([3, large + 10, 1, 2, 10], np.int64), 0.5)
    assert (found.least.tolist(), found.most.tolist()) == ([1, 10], [3, large + 10])
    assert found.quantiles[0].tolist() == [2, pytest.approx(large / 2 + 10)]


@pytest.mark.parametrize("size", [20, 5_000], ids=["sorted", "selected"])
def test_order_statistics_are_those_of_numpy(size: int) -> None:
    random = np.random.default_rng(7)
    groups = group(np.append(random.integers(0, 3, size), 3))
    values = np.append(random.integers(-50, 50, size), 8)  # many are equal; the last group has one call
    found = order_statistics(groups, values, 0.5, 0.95)
    for number in range(len(groups)):
        mine = values[groups.members(number)]
        assert (found.least[number], found.most[number]) == (mine.min(), mine.max())
        assert found.largest[number] == groups.members(number)[np.flatnonzero(mine == mine.max())[-1]]
        assert [shares[number] for shares in found.quantiles] == pytest.approx(np.percentile(mine, [50, 95]))


@pytest.mark.parametrize("values", [[0, 0, 1, 1, 1, 2], [1, 0, 2, 0, 1, 0]], ids=["ascending", "in any order"])
def test_pairs_are_counted_once(values: list[int]) -> None:
    which = [5, 6, 5, 6, 5, 5]
    groups, given = group(np.array(which)), np.array(values)
    expected = [len({value for key, value in zip(which, values, strict=True) if key == one}) for one in (5, 6)]
    assert count_pairs(groups, given, 3).tolist() == expected
