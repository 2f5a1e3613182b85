"""Kernel time on Tensor (matrix) cores, off them, and of kernels whose names do not tell."""

from __future__ import annotations

import msgspec

from torch_tb_profiler.model.engines import call_durations
from torch_tb_profiler.model.kernels.tensor_cores import TC_NO, TC_UNKNOWN, TC_YES, uses_tensor_cores
from torch_tb_profiler.model.trace import Int32, Trace


class CoreTime(msgspec.Struct, frozen=True):
    """Sums of durations in ns; every kernel counts in one of the three."""

    used: int
    not_used: int
    unknown: int

    @property
    def total(self) -> int:
        return self.used + self.not_used + self.unknown

    @property
    def ratio(self) -> float | None:
        """The share that is known to run on them, at least; None where no kernel takes time or no name tells."""
        return self.used / self.total if self.used + self.not_used > 0 else None


def core_time(trace: Trace, rows: Int32) -> CoreTime:
    """Where some kernels ran."""
    length, uses = call_durations(trace, rows), uses_tensor_cores(trace)[rows]
    return CoreTime(*(int(length[uses == verdict].sum()) for verdict in (TC_YES, TC_NO, TC_UNKNOWN)))
