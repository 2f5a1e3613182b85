"""The hardware metrics that Intel's scope profiler records for a kernel, in a slice of their own."""

from __future__ import annotations

from torch_tb_profiler.model.kinds import Kind, rows_of_kind
from torch_tb_profiler.model.trace import ABSENT, Trace, derived


@derived
def kernel_metric_rows(trace: Trace) -> dict[int, int]:
    """Row of a kernel -> row of the slice with its metrics: the one with the same `kernel_id`."""
    rows = rows_of_kind(trace, Kind.METRICS)
    if len(rows) == 0:
        return {}
    slices = dict(zip(trace.arg_int("kernel_id", rows).tolist(), rows.tolist(), strict=True))
    slices.pop(int(ABSENT), None)
    kernels = rows_of_kind(trace, Kind.KERNEL)
    ids = trace.arg_int("kernel_id", kernels).tolist()
    return {row: slices[id] for row, id in zip(kernels.tolist(), ids, strict=True) if id in slices}
