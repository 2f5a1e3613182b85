"""Columns that grow in place."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

from torch_tb_profiler.ingest.kineto.growing import GrowingColumn


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.float64])
def test_numbers_stay_while_a_column_grows(dtype: type) -> None:
    column = GrowingColumn(dtype)
    parts: list[Any] = [np.arange(size).astype(dtype) for size in (1, 300, 0, 70_000, 5)]
    for part in parts:
        column.append(part)
    assert column.length == 70_306
    numbers = column.finish()
    assert numbers.dtype == dtype
    assert (numbers == np.concatenate(parts)).all()


def test_other_types_and_strides_are_copied_as_numbers() -> None:
    column = GrowingColumn(np.float64)
    column.append(np.arange(6)[::2])
    assert column.finish().tolist() == [0.0, 2.0, 4.0]


def test_an_array_keeps_its_memory_and_can_be_changed() -> None:
    column = GrowingColumn(np.int64)
    column.append(np.arange(100_000))
    numbers = column.finish()
    part = numbers[50_000:]
    numbers += 1
    del column, numbers
    gc.collect()
    other = GrowingColumn(np.int64)
    other.append(np.zeros(200_000, np.int64))
    assert (part == np.arange(50_001, 100_001)).all()


def test_a_finished_column_is_empty() -> None:
    column = GrowingColumn(np.int32)
    assert column.finish().tolist() == []
    column.append(np.array([1, 2]))
    assert column.finish().tolist() == [1, 2]
    column.append(np.array([3]))
    assert (column.length, column.finish().tolist()) == (1, [3])


def test_numbers_are_overwritten_only_where_there_are_some() -> None:
    column = GrowingColumn(np.int64)
    column.append(np.arange(5))
    column.overwrite(3, np.array([7, 8]))
    for first in (-1, 4):
        with pytest.raises(IndexError):
            column.overwrite(first, np.array([1, 2]))
    assert column.finish().tolist() == [0, 1, 2, 7, 8]
