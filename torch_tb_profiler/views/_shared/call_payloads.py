"""Payloads that tables of kernels and of operators share: how long calls take, and time on Tensor Cores."""

from __future__ import annotations

import msgspec

from torch_tb_profiler.analyses.shared.utilization import CoreTime
from torch_tb_profiler.model.devices import device_kind
from torch_tb_profiler.model.trace import ABSENT, Int32, Int64, Trace


class CallInstance(msgspec.Struct, frozen=True):
    """One call; `event` is its row in the trace, which leads to the timeline."""

    event: int
    start_ns: int | None
    duration_ns: int


class CallDistribution(msgspec.Struct, frozen=True):
    """How the durations of one row's calls are distributed, in ns.

    edges     of the bins, one more than `counts`; outliers lie in the last bin
    outliers  more than three interquartile ranges above the third quartile, longest first, at most 20
    far_out   number of all such calls
    """

    calls: int
    edges: list[float]
    counts: list[int]
    median_ns: float | None
    p95_ns: float | None
    outliers: list[CallInstance]
    far_out: int
    longest: list[CallInstance]
    first: CallInstance | None


def build_call_distribution(trace: Trace, rows: Int32, values: Int64) -> CallDistribution:
    """Build the distribution of `values`, int64[k] ns, one per row of `rows`."""
    if len(rows) == 0:
        return CallDistribution(0, [], [], None, None, [], 0, [], None)
    from torch_tb_profiler.analyses.shared.durations import duration_distribution

    def instances(positions: Int64) -> list[CallInstance]:
        return [_instance(trace, int(rows[i]), int(values[i])) for i in positions.tolist()]

    durations = duration_distribution(values)
    return CallDistribution(
        calls=len(rows),
        edges=durations.edges.tolist(),
        counts=durations.counts.tolist(),
        median_ns=durations.median,
        p95_ns=durations.p95,
        outliers=instances(durations.outliers),
        far_out=durations.far_out,
        longest=instances(durations.longest),
        first=_instance(trace, int(rows[0]), int(values[0])),
    )


def _instance(trace: Trace, row: int, value: int) -> CallInstance:
    start = int(trace.events.start[row])
    return CallInstance(row, None if start == ABSENT else start, value)


class TensorCoreTime(msgspec.Struct, frozen=True):
    """Kernel time on Tensor (matrix) cores, off them, and of kernels whose names don't say."""

    used_ns: int
    not_used_ns: int
    unknown_ns: int


def build_tensor_core_time(time: CoreTime) -> TensorCoreTime:
    """Build the payload from the sums of the analysis."""
    return TensorCoreTime(time.used, time.not_used, time.unknown)


def tensor_cores_name(trace: Trace) -> str:
    """Return what the vendor of the devices calls them: Tensor Cores or Matrix Cores."""
    return "Matrix Cores" if device_kind(trace) == "ROCm" else "Tensor Cores"
