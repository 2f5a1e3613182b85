"""How the durations of one row's calls are spread, each outlier with its place on the timeline."""

from __future__ import annotations

import msgspec

from torch_tb_profiler.analyses.shared.durations import spread
from torch_tb_profiler.model.trace import ABSENT, Int32, Int64, Trace


class Instance(msgspec.Struct, frozen=True):
    """One call; `event` is its row in the trace, which leads to the timeline."""

    event: int
    start_ns: int | None
    duration_ns: int


class Instances(msgspec.Struct, frozen=True):
    """Durations in ns: a histogram, its median and 95th percentile, what lies far out, the longest, the first.

    edges     of the bins, one more than `counts`; outliers lie in the last bin
    outliers  more than three interquartile ranges above the third quartile, longest first, at most 20
    far_out   how many there are of these
    """

    calls: int
    edges: list[float]
    counts: list[int]
    median_ns: float | None
    p95_ns: float | None
    outliers: list[Instance]
    far_out: int
    longest: list[Instance]
    first: Instance | None


def instances(trace: Trace, rows: Int32, values: Int64) -> Instances:
    """The spread of `values`, int64[k] ns, one per row."""
    if len(rows) == 0:
        return Instances(0, [], [], None, None, [], 0, [], None)

    def listed(positions: Int64) -> list[Instance]:
        return [_instance(trace, int(rows[at]), int(values[at])) for at in positions.tolist()]

    durations = spread(values)
    return Instances(
        calls=len(rows),
        edges=durations.edges.tolist(),
        counts=durations.counts.tolist(),
        median_ns=durations.median,
        p95_ns=durations.p95,
        outliers=listed(durations.outliers),
        far_out=durations.far_out,
        longest=listed(durations.longest),
        first=_instance(trace, int(rows[0]), int(values[0])),
    )


def _instance(trace: Trace, row: int, value: int) -> Instance:
    start = int(trace.events.start[row])
    return Instance(row, None if start == ABSENT else start, value)
