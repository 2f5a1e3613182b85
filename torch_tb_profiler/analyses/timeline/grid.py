"""The grid that a window is drawn on: buckets of time, one per pixel column or a few more."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.model.trace import Int64

_LIMIT = 2**30
"""Units that a column of int32 holds at most; what lies farther away is outside of the window anyway."""


class Grid(msgspec.Struct, frozen=True):
    """[begin, end) in buckets of `resolution` ns, a power of two. Buckets count from time 0, so that grids of
    equal resolution fit at their seams."""

    begin: int
    end: int
    resolution: int

    @classmethod
    def of(cls, begin: int, end: int, width: int) -> Grid:
        """The coarsest grid that has at least `width` buckets, of at least 1 ns each."""
        return cls(begin, end, 1 << max(0, ((end - begin) // max(width, 1)).bit_length() - 1))

    def coarser(self) -> Grid:
        """Half as many buckets."""
        return Grid(self.begin, self.end, 2 * self.resolution)

    @property
    def unit(self) -> int:
        """ns that times are counted in: 1/256 of a bucket, 1 wherever a bucket is up to 256 ns."""
        return max(1, self.resolution >> 8)

    def pack_times(self, times: Int64) -> bytes:
        """Times as int32 in units from `begin`."""
        return self.pack_durations(times - self.begin)

    def pack_durations(self, durations: Int64) -> bytes:
        """Durations as int32 in units."""
        return np.clip(durations // self.unit, -_LIMIT, _LIMIT).astype("<i4").tobytes()
