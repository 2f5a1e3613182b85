"""Which slices the critical path passes through in a window, on the clocks that the trace was recorded with.

    thread  [ data ][ launch ]  [ add ]     path: data and the launch, then a; add is dim
    stream                  [ a ]

What passes between slices (latencies, host time without a slice) lights nothing.
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.schedule.categories import CATEGORIES, group_of, path_pieces
from torch_tb_profiler.analyses.tracks.tracks import tracks_of
from torch_tb_profiler.model.schedule.schedule import schedule
from torch_tb_profiler.model.trace import Bool, Int32, Int64, Trace, derived

_GROUPS = tuple(group_of(category) for category in CATEGORIES)


class Passages(msgspec.Struct, frozen=True):
    """Columns of length k, in the order of the path.

    row         int32  the innermost slice, or the device's work
    track       int32  the track that it is drawn on
    begin, end  int64  ns since the trace's start, begin < end
    """

    row: Int32
    track: Int32
    begin: Int64
    end: Int64

    def __getitem__(self, kept: Bool | Int64) -> Passages:
        return Passages(self.row[kept], self.track[kept], self.begin[kept], self.end[kept])


@derived
def passages(trace: Trace) -> Passages:
    """All of the complete steps."""
    pieces = path_pieces(trace)
    group = np.array(_GROUPS)[pieces.category]
    shift = np.where(group == "device", schedule(trace).clock_shift_ns, 0)
    kept = (group != "latency") & (pieces.row >= 0)
    row = pieces.row[kept]
    return Passages(row, tracks_of(trace, row), (pieces.begin - shift)[kept], (pieces.end - shift)[kept])


def passages_between(trace: Trace, begin: int, end: int, most: int) -> Passages:
    """Those that touch [begin, end); where they are more than `most`, those in a row on one track, with less than
    1/`most` of the window between them, are one: their longest, from the first begin to the last end."""
    whole = passages(trace)
    inside = whole[(whole.begin < end) & (whole.end > begin)]
    if len(inside.row) <= most:
        return inside
    starts = np.diff(inside.track, prepend=-1) != 0
    starts[1:] |= (inside.begin[1:] - inside.end[:-1]) * most > end - begin
    first, length = np.flatnonzero(starts), inside.end - inside.begin
    most_of_run = np.maximum.reduceat(length, first)
    of_run = np.repeat(np.arange(len(first)), np.diff(first, append=len(length)))
    at = np.flatnonzero(length == most_of_run[of_run])
    longest = np.empty(len(first), np.int64)
    longest[of_run[at]] = at  # the last write wins
    return Passages(
        row=inside.row[longest],
        track=inside.track[first],
        begin=inside.begin[first],
        end=np.maximum.reduceat(inside.end, first),
    )
