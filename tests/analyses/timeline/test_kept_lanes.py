"""Lanes and levels travel as columns: a tile made from them is the tile made from the trace."""

from __future__ import annotations

import random

import pytest

from tests.support.traces import draw
from torch_tb_profiler.analyses.timeline import pyramid as levels
from torch_tb_profiler.analyses.timeline.grid import Grid
from torch_tb_profiler.analyses.timeline.pyramid import from_columns, pyramid, to_columns
from torch_tb_profiler.analyses.timeline.tile import tile
from torch_tb_profiler.analyses.tracks import lanes as layout
from torch_tb_profiler.analyses.tracks.lanes import lanes
from torch_tb_profiler.model.trace import Trace


def slices(count: int) -> str:
    """Nested, side by side and sticking out of each other, on three threads."""
    chance = random.Random(7)
    limits = (3, 9, 9999, 300)
    numbers = ([chance.randrange(limit) for limit in limits] for _ in range(count))
    return "\n".join(f"host{thread} cpu_op op{name} {start} {us}" for thread, name, start, us in numbers)


@pytest.mark.parametrize("count", [1, 400])
def test_a_tile_from_columns_is_the_tile_from_the_trace(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels, "SMALL", 20)  # few slices, and yet several levels
    drawn = slices(count)
    trace, again = draw(drawn), draw(drawn)
    from_columns(again, to_columns(trace))
    monkeypatch.setattr(layout, "_arrange", lambda *_: pytest.fail("the lanes were derived again"))
    assert len(pyramid(again, lanes, False)) == len(pyramid(trace, lanes, False)) >= min(count // 100, 3)
    for grid in (Grid.of(0, 9_000_000, 64), Grid.of(2_000_000, 2_400_000, 640), Grid.of(0, 20_000_000, 5)):
        assert every_tile(again, grid) == every_tile(trace, grid)


def every_tile(trace: Trace, grid: Grid) -> object:
    return tile(trace, grid, range(9), python=False, color="class")


def test_columns_are_flat_numbers() -> None:
    for name, column in to_columns(draw("host cpu_op a 0 9\nhost cpu_op b 1 2")).items():
        assert column.ndim == 1 and column.dtype.kind in "iu", name
