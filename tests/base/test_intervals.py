from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torch_tb_profiler.base.intervals import (
    Intervals,
    covered_time,
    covered_time_between,
    intersect,
    merge,
    merge_by_owner,
    subtract,
    total,
    union,
)

SPANS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=12)


def as_set(spans: list[tuple[int, int]]) -> set[int]:
    return {unit for start, end in spans for unit in range(start, end)}


def make(spans: list[tuple[int, int]]) -> Intervals:
    pairs = np.array(spans, np.int64).reshape(-1, 2)
    return merge(pairs[:, 0], pairs[:, 1])


def units(merged: Intervals) -> set[int]:
    return as_set(list(zip(merged.starts.tolist(), merged.ends.tolist(), strict=True)))


def is_merged(merged: Intervals) -> bool:
    return bool((merged.ends > merged.starts).all() and (merged.starts[1:] > merged.ends[:-1]).all())


@given(SPANS)
def test_merge_is_the_union_of_units(spans: list[tuple[int, int]]) -> None:
    merged = make(spans)
    assert units(merged) == as_set(spans)
    assert total(merged) == len(as_set(spans))
    assert is_merged(merged)


@given(SPANS, SPANS)
def test_set_operations_agree_with_sets(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> None:
    assert units(union(make(a), make(b))) == as_set(a) | as_set(b)
    assert units(intersect(make(a), make(b))) == as_set(a) & as_set(b)
    assert units(subtract(make(a), make(b))) == as_set(a) - as_set(b)


@given(SPANS, SPANS)
def test_covered_time_of_overlapping_windows(spans: list[tuple[int, int]], windows: list[tuple[int, int]]) -> None:
    pairs = np.array(windows, np.int64).reshape(-1, 2)
    found = covered_time(make(spans), pairs[:, 0], pairs[:, 1])
    assert found.tolist() == [len(as_set(spans) & as_set([window])) for window in windows]


@given(SPANS, st.lists(st.integers(0, 40), min_size=1, max_size=12))
def test_covered_time_between_equals_that_of_the_windows(spans: list[tuple[int, int]], times: list[int]) -> None:
    ascending = np.array(sorted(times), np.int64)
    found = covered_time_between(make(spans), ascending)
    assert found.tolist() == covered_time(make(spans), ascending[:-1], ascending[1:]).tolist()


@pytest.mark.parametrize("scale", [1, 10**15])
def test_intervals_are_merged_by_owner_even_if_their_times_are_large(scale: int) -> None:
    rng = np.random.default_rng(4)
    owner, starts = rng.integers(0, 40, 500), rng.integers(0, 2000, 500) * scale
    ends = starts + rng.integers(-1, 60, 500) * scale
    owned = merge_by_owner(owner, starts, ends)
    for number in range(40):
        alone = merge(starts[owner == number], ends[owner == number])
        assert owned.starts[owned.owner == number].tolist() == alone.starts.tolist()
        assert owned.ends[owned.owner == number].tolist() == alone.ends.tolist()
