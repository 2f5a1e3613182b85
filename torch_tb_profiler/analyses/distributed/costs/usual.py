"""How long a window of work usually takes: the median of the other ranks that do the same.

Ranks do the same in a step if they run the same kinds of collectives in the same order. Where a rank is the only
one of its kind (the first stage of a pipeline), its whole step is compared with the median step, and a difference
is sought first in the windows that exceed the rank's own others of that kind.
"""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.analyses.distributed.costs.medians import median_of_others, sorted_within
from torch_tb_profiler.analyses.distributed.job import Job
from torch_tb_profiler.analyses.distributed.matching.order import ordinals
from torch_tb_profiler.analyses.shared.grouping import Groups, group
from torch_tb_profiler.base.median import median
from torch_tb_profiler.model.trace import ABSENT, Bool, Int32, Int64


def alike_windows(job: Job, rows: Int64) -> Groups:
    """Which windows of work are compared: the n-th of steps in which ranks do the same."""
    table = job.table
    uses = zip(job.groups, job.members, strict=True)
    sizes = np.array([each.size or len(members) for each, members in uses] + [0])
    known = (table.source[rows] != ABSENT) & (table.target[rows] != ABSENT)
    down = np.where(known, np.sign(table.target[rows] - table.source[rows]), 0)
    kind = group(table.collective[rows], sizes[table.group[rows]], down).which
    block = group(table.member[rows], table.step[rows])
    nth = ordinals(np.zeros(len(rows), np.bool_), table.member[rows], table.step[rows])
    return group(table.step[rows], _sequences(kind, block, nth)[block.which], nth)


def _sequences(kind: Int64, block: Groups, nth: Int64) -> Int64:
    """int64[blocks]: equal for blocks that have the same kinds in the same order."""
    counts = block.counts
    begins = np.cumsum(counts) - counts
    ordered = np.empty(len(kind), np.int64)
    ordered[begins[block.which] + nth] = kind
    sequence, count = np.empty(len(counts), np.int64), 0
    for length in np.unique(counts).tolist():
        blocks = np.flatnonzero(counts == length)
        whole = np.ascontiguousarray(ordered[begins[blocks][:, None] + np.arange(length)])
        distinct, which = np.unique(whole.view(np.dtype((np.void, whole.itemsize * length))), return_inverse=True)
        sequence[blocks] = count + which.reshape(-1)
        count += len(distinct)
    return sequence


def usual_work(work: Int64, windows: Groups, member: Int64, step: Int32, kind: Int32) -> Int64:
    """int64[m] ns."""
    order = sorted_within(windows.which, work, len(windows))
    which, counts = windows.which[order], windows.counts
    begin, size = (np.cumsum(counts) - counts)[which], counts[which]
    usual: Int64 = work.copy()
    several = np.flatnonzero(size > 1)
    position = np.arange(len(order)) - begin
    usual[order[several]] = median_of_others(work[order], begin[several], size[several], position[several])
    only = np.zeros(len(work), np.bool_)
    only[order] = size == 1
    if only.any():
        _by_steps(work, usual, only, member, step, kind)
    return usual


def _by_steps(work: Int64, usual: Int64, only: Bool, member: Int64, step: Int32, kind: Int32) -> None:
    """Fill in what is usual in steps of ranks that are the only ones of their kind."""
    steps = group(member, step)
    totals, step_of = steps.sums(work), step[steps.first]
    for number in np.unique(steps.which[only]).tolist():
        rows = steps.members(number)
        others = totals[(step_of == step_of[number]) & (np.arange(len(totals)) != number)]
        excess = int(totals[number] - median(others)) if len(others) else 0
        if excess <= 0:
            continue
        own, odd = work[rows].astype(np.float64), np.zeros(len(rows))
        for each in np.unique(kind[rows]).tolist():
            same = kind[rows] == each
            odd[same] = np.maximum(own[same] - median(own[same]), 0)
        odd *= min(1.0, excess / max(odd.sum(), 1.0))
        rest = own - odd
        usual[rows] = (rest * (1 - (excess - odd.sum()) / max(rest.sum(), 1.0))).astype(np.int64)
