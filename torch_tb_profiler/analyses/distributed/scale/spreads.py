"""How much the ranks of a job differ: order statistics over all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.steps import AverageStep, AverageWaiting
from torch_tb_profiler.analyses.distributed.stragglers import Straggler

Measure = Literal["duration", "computation", "overlap", "exposed", "other", "transfer", "waiting", "cost"]


class Spread(msgspec.Struct, frozen=True):
    """One measure over the `ranks` ranks that have it, ns per step.

    p10, median, p90, p99  percentiles, linear between the two nearest ranks
    least_member, most_member  positions of the first ranks with the least and the greatest
    """

    measure: Measure
    ranks: int
    mean: float
    least: float
    p10: float
    median: float
    p90: float
    p99: float
    most: float
    least_member: int
    most_member: int


def spreads(
    steps: Sequence[AverageStep], waits: Sequence[AverageWaiting], rows: Sequence[Straggler]
) -> Iterator[Spread]:
    """Of everything that is known of at least one rank."""
    for measure in ("duration", "computation", "overlap", "exposed", "other"):
        yield from _spread(measure, [(row.member, getattr(row, measure)) for row in steps])
    yield from _spread("transfer", [(row.member, row.transfer) for row in waits])
    yield from _spread("waiting", [(row.member, row.waiting) for row in waits])
    yield from _spread("cost", [(row.member, row.cost) for row in sorted(rows, key=lambda row: row.member)])


def _spread(measure: Measure, values: Sequence[tuple[int, float | None]]) -> Iterator[Spread]:
    known = [(member, value) for member, value in values if value is not None]
    if not known:
        return
    times = np.array([value for _, value in known])
    least, most = int(times.argmin()), int(times.argmax())
    p10, median, p90, p99 = np.percentile(times, (10, 50, 90, 99)).tolist()
    yield Spread(
        measure=measure,
        ranks=len(known),
        mean=float(times.sum() / len(times)),
        least=float(times[least]),
        p10=p10,
        median=median,
        p90=p90,
        p99=p99,
        most=float(times[most]),
        least_member=known[least][0],
        most_member=known[most][0],
    )
