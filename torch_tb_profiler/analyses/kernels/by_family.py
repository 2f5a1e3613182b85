"""Device work by family: what sort of work takes the time."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.kernels.summary import durations
from torch_tb_profiler.analyses.kernels.table import Filter, filtered
from torch_tb_profiler.model.engines import deduplicate_executions
from torch_tb_profiler.model.kernels.families import FAMILIES, family_codes
from torch_tb_profiler.model.kinds import DEVICE_KINDS, rows_of_kind
from torch_tb_profiler.model.trace import Trace


class FamilyTime(msgspec.Struct, frozen=True):
    """Kernels, copies and memsets of one family: how many different names, launches, and the sum of their ns."""

    family: str
    names: int
    calls: int
    total: int


def family_times(trace: Trace, kept: Filter) -> list[FamilyTime]:
    """Largest first; the filter's own family does not count, so that another one can be chosen instead."""
    rows = deduplicate_executions(
        trace, filtered(trace, rows_of_kind(trace, *DEVICE_KINDS), msgspec.structs.replace(kept, family=""))
    )
    family, length, name = family_codes(trace)[rows], durations(trace, rows), trace.events.name[rows]
    times = []
    for number in np.unique(family).tolist():
        mine = family == number
        names = len(np.unique(name[mine]))
        times.append(FamilyTime(FAMILIES[number], names, int(mine.sum()), int(length[mine].sum())))
    return sorted(times, key=lambda each: each.total, reverse=True)
