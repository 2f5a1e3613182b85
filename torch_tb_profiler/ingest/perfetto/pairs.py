"""Begins and ends of slices, far apart in the file.

PyTorch writes a group of slices as all their begins, then all their ends in the same order, so on each track the
first end belongs to the first begin that has none. (A viewer that takes them by time nests equal times wrongly.)
"""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.ingest.progress import Step, no_step
from torch_tb_profiler.model.trace import ABSENT, Int32, Int64


class Pairs:
    """Collects begins and ends in order of the file."""

    def __init__(self) -> None:
        self._lanes: dict[int, int] = {}
        self._pieces: list[tuple[Int32, Int64, Int64]] = []

    def add(self, track: Int64, time: Int64, row: Int64) -> None:
        """k begins and ends; `row` of a begin, below 0 of an end."""
        if len(track):
            # Tracks are numbered as they come: to sort the tracks of a whole file at its end takes seconds.
            distinct, of = np.unique(track, return_inverse=True)
            lanes = [self._lanes.setdefault(each, len(self._lanes)) for each in distinct.tolist()]
            self._pieces.append((np.array(lanes, np.int32)[of.ravel()], time, row))

    def durations(self, count: int, step: Step = no_step) -> tuple[Int64, int]:
        """(int64[count]: by row what the end says, ABSENT where none does; how many begins and ends are alone)."""
        duration = np.full(count, ABSENT, np.int64)
        if not self._pieces:
            return duration, 0
        lane, time, row = (np.concatenate(column) for column in zip(*self._pieces, strict=True))
        self._pieces.clear()
        step()
        order = np.argsort(lane, kind="stable")
        step()
        lane, time, row = lane[order].astype(np.int64), time[order], row[order]
        first = np.append(True, lane[1:] != lane[:-1])
        step()
        waiting = np.cumsum(np.where(row >= 0, 1, -1))
        waiting -= (waiting - np.where(row >= 0, 1, -1))[first][lane]  # from 0 on each track
        step()
        # An end that finds nothing waiting takes the count to a new low; the lows of tracks do not mix if each
        # track lies far below the one before it.
        far = 2 * len(row) + 2
        low = np.minimum.accumulate(waiting - lane * far) + lane * far
        before = np.minimum(np.where(first, 0, np.append(0, low[:-1])), 0)
        step()
        begins = np.flatnonzero(row >= 0)
        ends = np.flatnonzero((row < 0) & (waiting >= before))
        strays = len(row) - len(begins) - len(ends)
        # The n-th end of a track belongs to its n-th begin.
        step()
        place = np.searchsorted(lane[begins], lane[ends]) + _rank(lane[ends])
        owner = begins[place]
        step()
        duration[row[owner]] = time[ends] - time[owner]
        return duration, strays + len(begins) - len(ends)


def _rank(lane: Int64) -> Int64:
    """int64[k]: how many of the same lane come before; lanes ascend."""
    return np.arange(len(lane)) - np.searchsorted(lane, lane)
