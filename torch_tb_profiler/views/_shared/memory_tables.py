"""Where a profiler that keeps memory out of its traces has put it."""

from __future__ import annotations

from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.model.vendors import ascend


def memory_elsewhere(trace: Trace) -> str | None:
    """A clause; None of every profiler that records memory in the trace if it is asked to."""
    if not ascend.is_ascend(trace):
        return None
    return (
        "Ascend's profiler keeps memory out of the trace, in tables beside it (`operator_memory.csv`, "
        "`memory_record.csv`), which are not read here"
    )
