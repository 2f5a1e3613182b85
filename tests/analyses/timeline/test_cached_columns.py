"""What tiles and counters take travels as columns: what is made from them is what the trace says."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.support.traces import draw
from torch_tb_profiler.analyses.timeline import boxes as levels
from torch_tb_profiler.analyses.timeline.boxes import Grid, pyramid
from torch_tb_profiler.analyses.timeline.cached_columns import (
    counter_columns,
    restore_counters,
    restore_tiles,
    tile_columns,
)
from torch_tb_profiler.analyses.timeline.counters import CounterSeries, all_series, first_counter
from torch_tb_profiler.analyses.timeline.tile import slice_tile
from torch_tb_profiler.analyses.tracks import lanes as layout
from torch_tb_profiler.analyses.tracks.lanes import lanes
from torch_tb_profiler.model.trace import Trace


def slices(count: int) -> str:
    """Draw slices nested, side by side and sticking out of each other, on three threads."""
    chance = random.Random(7)
    limits = (3, 9, 9999, 300)
    numbers = ([chance.randrange(limit) for limit in limits] for _ in range(count))
    return "\n".join(f"host{thread} cpu_op op{name} {start} {us}" for thread, name, start, us in numbers)


@pytest.mark.parametrize("count", [1, 400])
def test_a_tile_from_columns_is_the_tile_from_the_trace(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels, "MIN_BOXES_PER_LEVEL", 20)  # few slices, and yet several levels
    trace_slices = slices(count)
    trace, again = draw(trace_slices), draw(trace_slices)
    restore_tiles(again, tile_columns(trace))
    monkeypatch.setattr(layout, "_build_lane_order", lambda *_: pytest.fail("the lanes were derived again"))
    assert len(pyramid(again, lanes, False)) == len(pyramid(trace, lanes, False)) >= min(count // 100, 3)
    for grid in (Grid.of(0, 9_000_000, 64), Grid.of(2_000_000, 2_400_000, 640), Grid.of(0, 20_000_000, 5)):
        assert every_tile(again, grid) == every_tile(trace, grid)


def every_tile(trace: Trace, grid: Grid) -> object:
    return slice_tile(trace, grid, range(9), python=False, color="class")


DEVICE = """
host  cpu_op  f<int>     0  9
gpu0  kernel  g<é,~int>  2  5  stream=7
gpu0  kernel  f<int>     8  1  stream=7
gpu0  kernel  h\ud800     9  9  stream=7
"""


def test_names_and_classes_from_columns_are_those_of_the_trace() -> None:
    """`f<int>` is an operator, too, and has no short name."""
    trace, again = draw(DEVICE), draw(DEVICE)
    restore_tiles(again, tile_columns(trace))
    grid = Grid.of(0, 20_000, 64)
    assert every_tile(again, grid) == every_tile(trace, grid)
    assert len(slice_tile(again, grid, (), python=False, color="class").short_names) == 2


def test_counters_from_columns_are_those_of_the_trace() -> None:
    trace, again = draw(DEVICE), draw(DEVICE)
    restore_counters(again, counter_columns(trace))
    assert first_counter(again) == first_counter(trace) == 2
    assert len(all_series(trace)) == len(all_series(again)) > 0
    for expected, series in zip(all_series(trace), all_series(again), strict=True):
        for field in CounterSeries.__struct_fields__:
            assert np.array_equal(getattr(series, field), getattr(expected, field)), field


def test_a_trace_without_counters_has_none_from_columns() -> None:
    trace, again = draw("host cpu_op a 0 9"), draw("host cpu_op a 0 9")
    restore_counters(again, counter_columns(trace))
    assert all_series(again) == all_series(trace) == ()


def test_columns_are_flat_numbers() -> None:
    trace = draw(DEVICE)
    for name, column in {**tile_columns(trace), **counter_columns(trace)}.items():
        assert column.ndim == 1 and column.dtype.kind in "iuf", name
