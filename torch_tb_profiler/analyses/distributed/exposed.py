"""How much of the communication that no computation hides moves data, and how much waits for other ranks.

    computation  |=======|
    operation        |---- waits ----|= transfer =|
    exposed              |----------------------|      the end of the operation: its transfer, and waiting before

What is exposed of an operation counts as its end, since computation stops when it needs the result. Where
computation goes on until the end, part of the transfer is hidden, and the waiting is more than the figure.
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.comparison import Comparison
from torch_tb_profiler.base.intervals import merge, total


class ExposedCommunication(msgspec.Struct, frozen=True):
    """Mean ns per complete step of a rank, of operations that were compared.

    transfer  in which any of them moves data; waiting: in which one waits for other ranks, and none moves data
    """

    transfer: float
    waiting: float


def exposed_communication(comparison: Comparison, member: int) -> ExposedCommunication | None:
    """Of one rank; None if it has no complete step in which communication was compared.

    Without kernels the computation is the host's, which goes on while other threads communicate: then all
    communication counts, as in the overview.
    """
    job, split = comparison.job, comparison.split
    summary = comparison.sources[member].summary
    complete = {step.name for step in summary.complete_steps()}
    steps = [code for code, name in enumerate(job.steps) if name in complete]
    rows = np.flatnonzero(split.compared & (job.table.member == member) & np.isin(job.table.step, steps))
    if len(rows) == 0:
        return None
    end, latency = job.table.end[rows], job.table.latency[rows]
    exposed = job.table.exposed[rows] if summary.by_kernels else latency
    moving = total(merge(end - np.minimum(exposed, split.transfer[rows]), end))
    either = total(merge(end - exposed, end))
    return ExposedCommunication(moving / len(complete), (either - moving) / len(complete))
