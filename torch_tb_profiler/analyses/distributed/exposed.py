"""How much of the communication that no computation hides moves data, and how much waits for other ranks.

    computation  |=======|
    operation        |---- waits ----|= transfer =|
    exposed              |----------------------|      the end of the operation: its transfer, and waiting before

What is exposed of an operation counts as its end, since computation stops when it needs the result. Where
computation goes on until the end, part of the transfer is hidden, and the waiting is more than the figure.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.comparison import Comparison
from torch_tb_profiler.base.intervals import merge_by_owner
from torch_tb_profiler.model.trace import NO_CODE, Int64


class ExposedSteps(msgspec.Struct, frozen=True):
    """Columns of the s complete steps of a rank; ns, of operations that were compared.

    names     of the steps
    transfer  int64[s]  in which any of them moves data
    waiting   int64[s]  in which one waits for other ranks, and none moves data
    behind    position of another rank -> int64[s], not all 0: the part of `waiting` in operations at which that
              rank is known to arrive last; of the rest nobody is
    """

    names: tuple[str, ...]
    transfer: Int64
    waiting: Int64
    behind: Mapping[int, Int64]


class ExposedCommunication(msgspec.Struct, frozen=True):
    """Mean ns per complete step of a rank, of `ExposedSteps`."""

    transfer: float
    waiting: float


def exposed_communication(comparison: Comparison, member: int) -> ExposedCommunication | None:
    """Of one rank; None if it has no complete step in which communication was compared."""
    exposed = exposed_steps(comparison, member)
    if exposed is None:
        return None
    count = len(exposed.names)
    return ExposedCommunication(int(exposed.transfer.sum()) / count, int(exposed.waiting.sum()) / count)


def exposed_steps(comparison: Comparison, member: int) -> ExposedSteps | None:
    """Of one rank; None if it has no complete step in which communication was compared.

    Without kernels the computation is the host's, which goes on while other threads communicate: then all
    communication counts, as in the overview.
    """
    job, split, arrivals = comparison.job, comparison.split, comparison.arrivals
    summary = comparison.sources[member].summary
    names = tuple(dict.fromkeys(summary.steps.complete()))
    number = {name: at for at, name in enumerate(names)}
    place = np.array([*(number.get(name, NO_CODE) for name in job.steps), NO_CODE], np.int64)
    step = place[job.table.step]
    rows = np.flatnonzero(split.compared & (job.table.member == member) & (step >= 0))
    if len(rows) == 0:
        return None
    step, count = step[rows], len(names)
    end, latency = job.table.end[rows], job.table.latency[rows]
    exposed = job.table.exposed[rows] if summary.by_kernels else latency
    moves = end - np.minimum(exposed, split.transfer[rows])
    transfer = merge_by_owner(step, moves, end).totals(count)
    waiting = merge_by_owner(step, end - exposed, end).totals(count) - transfer

    collective = comparison.matching.instance[rows]
    whom = np.where(arrivals.attributable[collective], job.table.member[arrivals.last[collective]], NO_CODE)
    whom[whom == member] = NO_CODE
    # What the next rank adds to the time that is taken already: time behind several ranks counts once, for the one
    # that is waited for most.
    behind: dict[int, Int64] = {}
    length = moves - (end - exposed)
    claims = np.bincount(whom[whom >= 0], length[whom >= 0], len(job.sources))
    begin, taken = moves.copy(), transfer
    for late in np.argsort(-claims, kind="stable").tolist():
        if claims[late] <= 0:
            break
        begin[whom == late] = (end - exposed)[whom == late]
        reached = merge_by_owner(step, begin, end).totals(count)
        if (reached > taken).any():
            behind[late] = reached - taken
        taken = reached
    return ExposedSteps(names, transfer, waiting, behind)
