"""Whether a few ranks keep the others waiting, what that costs, and what these ranks do meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.comparison import Comparison
from torch_tb_profiler.analyses.distributed.meanwhile import Meanwhile
from torch_tb_profiler.analyses.distributed.stragglers import Straggler
from torch_tb_profiler.analyses.distributed.totals import WorkerTotal
from torch_tb_profiler.model.trace import ABSENT

WORTH_NAMING = 0.02
"""A delay below this share of a step is not worth naming."""

MOST_DELAY = 0.7
"""The ranks that cause this share of all delay are the stragglers, if they are few."""

FEW = 0.25
"""They are few if they are at most this share of the ranks (or one)."""

ON_DEVICE = 0.5
"""The device is the cause if kernels make up at least this share of the difference to the median rank."""

NAMED_CAUSE = 0.2
"""An operator or kernel is named as the cause if it makes up at least this share of the difference."""


class Communication(msgspec.Struct, frozen=True):
    """What some ranks spend on communication.

    share   of a complete step, mean over the ranks
    exposed True: only while nothing computes. Without a GPU the computation is the host's, which goes on while
            other threads communicate: then all communication counts
    largest the collective with the most time, None without any; only: there is no other
    """

    members: list[int]
    share: float
    exposed: bool
    largest: str | None
    only: bool


class Cause(msgspec.Struct, frozen=True):
    """What a late rank spends more time on than the median rank; ns per step.

    where   host: an operator or annotation; device: a kernel; category: `name` is one of the overview's
    median  None where it is not among the median rank's largest
    collective  where the rank was latest: an example
    """

    member: int
    where: Literal["host", "device", "category"]
    name: str
    time: float
    median: float | None
    collective: int


class Verdict(msgspec.Struct, frozen=True):
    """kind     straggler: `ranks` keep the others waiting, most delay first; balanced: no rank stands out; unknown
    reason   why it is unknown: no rank, one alone, no collective matched, or no two ranks on one clock
    most     the rank with the most delay, None if no last arrival is known
    communication  of the other ranks, cause: what the first of `ranks` does meanwhile; None if unknown
    """

    kind: Literal["straggler", "balanced", "unknown"]
    reason: Literal["empty", "alone", "unmatched", "clocks"] | None = None
    ranks: tuple[Straggler, ...] = ()
    most: Straggler | None = None
    communication: Communication | None = None
    cause: Cause | None = None


def judge(
    comparison: Comparison, rows: Sequence[Straggler], totals: Sequence[WorkerTotal], before: Sequence[Meanwhile]
) -> Verdict:
    """`rows`: every rank, most delay first; `before`: what the first of them did meanwhile."""
    if not comparison.sources:
        return Verdict("unknown", "empty")
    if len(comparison.sources) == 1:
        return Verdict("unknown", "alone")
    if not comparison.matching.compared.any():
        return Verdict("unknown", "unmatched")
    if not (comparison.arrivals.skew != ABSENT).any():
        return Verdict("unknown", "clocks")
    few = _few(comparison, rows)
    return Verdict(
        kind="straggler" if few else "balanced",
        ranks=few,
        most=rows[0] if rows else None,
        communication=_communication(comparison, totals, few),
        cause=_cause(few[0], before) if few else None,
    )


def _few(comparison: Comparison, rows: Sequence[Straggler]) -> tuple[Straggler, ...]:
    """The few ranks that cause most of the delay, if it is worth naming."""
    delays = np.array([row.delay for row in rows], np.int64)
    if delays.sum() == 0:
        return ()
    count = int(np.searchsorted(np.cumsum(delays), MOST_DELAY * delays.sum())) + 1
    step = np.mean([step.duration for source in comparison.sources for step in source.summary.steps])
    worth_naming = rows[0].delay_per_step >= WORTH_NAMING * step
    return tuple(rows[:count]) if worth_naming and count <= max(1, FEW * len(rows)) else ()


def _communication(
    comparison: Comparison, totals: Sequence[WorkerTotal], without: Sequence[Straggler]
) -> Communication | None:
    """Of all ranks but those of `without`; None if none of them has a complete step."""
    excluded = {row.member for row in without}
    members = [member for member in range(len(comparison.sources)) if member not in excluded]
    summaries = [comparison.sources[member].summary for member in members]
    exposed = all(summary.by_kernels for summary in summaries)
    shares = [
        float(np.mean([(step.exposed + (0 if exposed else step.overlap)) / step.duration for step in steps]))
        for steps in ([step for step in summary.complete_steps() if step.duration] for summary in summaries)
        if steps
    ]
    if not shares:
        return None
    times: dict[str, int] = {}
    for total in totals:
        time = total.exposed if exposed else total.latency
        if time is not None and comparison.job.table.member[total.operation] not in excluded:
            name = comparison.job.name_of(total.operation)
            times[name] = times.get(name, 0) + time
    largest = max(times, key=lambda name: times[name], default=None)
    return Communication(members, float(np.mean(shares)), exposed, largest, len(times) == 1)


def _cause(straggler: Straggler, rows: Sequence[Meanwhile]) -> Cause | None:
    """None if nothing is recorded of what it did, or if it took no longer than the median rank."""
    row = next((each for each in rows if each.member == straggler.member), None)
    if row is None or row.window <= row.median_window:
        return None
    difference, steps = row.window - row.median_window, max(row.steps, 1)
    kernel = next(each for each in row.categories if each.name == "kernel")
    on_device = kernel.excess >= ON_DEVICE * difference
    named = row.kernels if on_device else row.host
    if named and named[0].excess >= NAMED_CAUSE * difference:
        largest = named[0]
        median = None if largest.median is None else largest.median / steps
        where: Literal["host", "device"] = "device" if on_device else "host"
        return Cause(row.member, where, largest.name, largest.time / steps, median, row.latest)
    category = max(row.categories, key=lambda each: each.excess)
    time, median = category.time / steps, (category.median or 0) / steps
    return Cause(row.member, "category", category.name, time, median, row.latest)
