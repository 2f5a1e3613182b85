"""The kernel that takes the most time."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.kernels.summary import durations
from torch_tb_profiler.analyses.kernels.table import Filter, kernel_table
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.trace import Trace


class LargestKernel(msgspec.Struct, frozen=True):
    """row    of the trace: the longest launch of that name
    share  of the time of all kernels, whatever runs at once, that all its launches take
    """

    row: int
    share: float


@derived
def largest_kernel(trace: Trace) -> LargestKernel | None:
    """By the sum over all launches of its name; None where no kernel takes time."""
    table = kernel_table(trace, "name", Filter())
    length = durations(trace, table.rows)
    if (total := int(length.sum())) <= 0:
        return None
    sums = table.groups.sums(length)
    top = int(np.argmax(sums))
    members = table.groups.members(top)
    return LargestKernel(int(table.rows[members[np.argmax(length[members])]]), float(sums[top]) / total)
