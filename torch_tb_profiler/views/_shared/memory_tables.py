"""What a profiler that has no memory in its traces does instead of recording it there."""

from __future__ import annotations

from torch_tb_profiler.model.trace import ROCPROF, Trace
from torch_tb_profiler.model.vendors import ascend


def memory_elsewhere(trace: Trace) -> str | None:
    """A clause; None of every profiler that records memory in the trace if it is asked to."""
    if trace.producer == ROCPROF:
        return "rocprofv3 records calls of the driver and work of the devices, not what PyTorch allocates"
    if not ascend.is_ascend(trace):
        return None
    return (
        "Ascend's profiler keeps memory out of the trace, in tables beside it (`operator_memory.csv`, "
        "`memory_record.csv`), which are not read here"
    )
