"""Ranks that are late in few steps: all of them, and none by chance."""

from __future__ import annotations

import numpy as np
import pytest

from torch_tb_profiler.analyses.distributed.late_once import MIN_APART_RATIO, find_events
from torch_tb_profiler.model.trace import Float64


def half_normal(ranks: int, steps: int, seed: int) -> Float64:
    """Return how late ranks are that differ by chance only, with a standard deviation of 100 ns."""
    late: Float64 = np.maximum(np.random.default_rng(seed).normal(0, 100, (ranks, steps)), 0)
    return late


@pytest.mark.parametrize("events", [{1: 3}, {1: 3, 2: 6}, {0: 1, 1: 3, 2: 6}, {0: 1, 1: 3, 2: 6, 3: 6}])
def test_all_ranks_that_are_late_once_are_found_latest_first(events: dict[int, int]) -> None:
    """The more of them there are, the less each stands out from the mean of all."""
    late = half_normal(4, 10, 0) / 10
    for rank, step in events.items():
        late[rank, step] = 2000 - 100 * rank
    assert find_events(late, 500) == sorted(events)
    assert find_events(late, 1950)[1:] == []


def test_a_rank_that_is_late_in_most_steps_is_no_event_nor_are_others_beside_it() -> None:
    late = half_normal(4, 10, 0) / 10
    late[1, :6], late[2, 3] = 2000, 1500
    assert find_events(late, 500) == []
    late[1, 5] = 0
    assert find_events(late, 500) == [1, 2]


def test_a_further_rank_is_far_later_than_what_is_left() -> None:
    late = np.zeros((4, 12))
    late[1, 3], late[2, 6] = 8000, 3000
    late[3] = np.linspace(100, 3000 / MIN_APART_RATIO + 10, 12)
    assert find_events(late, 500) == [1]
    late[3] *= 0.9
    assert find_events(late, 500) == [1, 2]


def test_several_ranks_are_late_in_few_of_all_steps() -> None:
    late = np.full((5, 5), 1.0)
    np.fill_diagonal(late, 1000)
    assert find_events(late, 100) == [0, 1, 2, 3, 4]
    late[0, 1] = 900
    assert find_events(late, 100) == []


@pytest.mark.parametrize(("ranks", "steps"), [(4, 10), (8, 10), (32, 10)])
def test_chance_alone_seldom_makes_several_ranks_late(ranks: int, steps: int) -> None:
    several = sum(len(find_events(half_normal(ranks, steps, seed), 50)) > 1 for seed in range(500))
    assert several <= 10


def test_what_is_left_is_all_but_the_events() -> None:
    """Skipped ranks, and the other steps of those taken, count among it; also where every rank has an event."""
    late = np.full((6, 40), 1.0)
    late[np.arange(6), np.arange(6)] = 1000
    late[:, 39] = 300  # less than half of each event
    assert find_events(late, 500) == [0, 1, 2, 3, 4, 5]
    late[:, 38] = 340  # more than a third of each
    assert find_events(late, 500)[1:] == []
    late[:, 38] = 1
    late[5] = 800  # late in all steps, so no event
    assert find_events(late, 500) == []
