"""The device work of a rank by family of kernels: what it computes, communicates and moves."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.grouping import group
from torch_tb_profiler.model.engines.executions import call_lengths, one_each
from torch_tb_profiler.model.families import family_codes, short_kernel_names
from torch_tb_profiler.model.kernels.families import FAMILIES
from torch_tb_profiler.model.kinds import DEVICE_KINDS, rows_of_kind
from torch_tb_profiler.model.trace import Trace


class FamilyTotal(msgspec.Struct, frozen=True):
    """Kernels, copies and memsets of one family; ns are sums of durations.

    kernel  the short name of what takes most of it, and its ns
    """

    family: str
    calls: int
    time: int
    kernel: str
    kernel_time: int


def family_totals(trace: Trace) -> tuple[FamilyTotal, ...]:
    """Of the whole trace, most time first."""
    rows = one_each(trace, rows_of_kind(trace, *DEVICE_KINDS))
    family, name = family_codes(trace)[rows].astype(np.int32), trace.events.name[rows]
    length = call_lengths(trace, rows)
    kernels = group(family, name)
    times = kernels.sums(length)
    of_kernel = family[kernels.first]
    totals = []
    for code in np.unique(family).tolist():
        mine = np.flatnonzero(of_kernel == code)
        most = int(mine[np.argmax(times[mine])])
        text = trace.strings[name[kernels.first[most]]] if name[kernels.first[most]] >= 0 else ""
        calls, time = int(kernels.counts[mine].sum()), int(times[mine].sum())
        totals.append(
            FamilyTotal(FAMILIES[code], calls, time, short_kernel_names(trace).get(text, text), int(times[most]))
        )
    return tuple(sorted(totals, key=lambda each: -each.time))
