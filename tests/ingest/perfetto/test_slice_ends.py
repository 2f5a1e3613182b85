"""Begins and ends of slices that lie in different parts of a file."""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.ingest.perfetto.pytorch import SliceEnds
from torch_tb_profiler.model.trace import ABSENT

END = -1


def add_part(pairs: SliceEnds, *events: tuple[int, int, int]) -> None:
    """Add a part of a file: (track, time, row of a begin or END)."""
    track, time, row = np.array(events, np.int64).T
    pairs.add(track, time, row)


def test_an_end_closes_a_slice_of_its_own_track() -> None:
    pairs = SliceEnds()
    add_part(pairs, (900, 0, 0), (-5, 10, 1), (900, 20, 2))
    add_part(pairs, (-5, 17, END))
    add_part(pairs, (44, 50, 3), (900, 1, END), (44, 59, END))
    add_part(pairs, (900, 23, END))
    duration, alone = pairs.durations(4)
    assert (duration.tolist(), alone) == ([1, 7, 3, 9], 0)


def test_begins_and_ends_without_a_partner_are_counted() -> None:
    pairs = SliceEnds()
    add_part(pairs, (1, 5, END), (2, 0, 0))
    add_part(pairs, (1, 6, 1), (1, 8, END), (1, 9, END))
    duration, alone = pairs.durations(2)
    assert (duration.tolist(), alone) == ([ABSENT, 2], 3)
