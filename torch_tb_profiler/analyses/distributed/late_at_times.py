"""What ranks work longer in some steps only, where several of them may do so at once.

step     1     2     3     4     5     6
rank 0   late  .     .     .     late  .
rank 1   late  .     .     .     late  .
rank 2   .     .     late  .     .     .     most ranks are late in steps 1 and 5, so a median calls that typical

A window is compared with the rank that works shortest in it. A window that no other rank has, such as those of
the first stage of a pipeline, can't be: it is compared with the rank's own in other steps. A step that is longer
on all ranks looks the same there, but nobody waits in it, so what it is longer on every rank is no lateness.
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.job import DistributedJob
from torch_tb_profiler.analyses.distributed.late_once import judged_steps, sums_by_step, typical_job_steps
from torch_tb_profiler.analyses.distributed.operations import select
from torch_tb_profiler.analyses.distributed.order_matching import ordinals
from torch_tb_profiler.analyses.distributed.work_windows import WorkWindows
from torch_tb_profiler.analyses.shared.grouping import group
from torch_tb_profiler.base.arrays import lowest_by_number
from torch_tb_profiler.model.trace import Bool, Float64, Int64

MIN_LATE_SHARE = 0.05
"""A rank is late in a step if it works longer than is typical by more than this share of its work."""


def without_lateness_at_times(job: DistributedJob, work: WorkWindows) -> WorkWindows:
    """Return the windows such that what is typical lacks what a rank works longer in steps in which it is late.

    What it works longer in every step isn't lateness at times.
    """
    counts = np.bincount(work.window)
    longer = work.work - lowest_by_number(work.window, work.work, len(counts))[work.window]
    excess = sums_by_step(job, work, longer)[:, :-1]
    least = excess[:, typical_job_steps(job)[:-1]].min(axis=1, initial=np.inf, keepdims=True)
    typical = _compute_lateness(job, work, longer, excess, np.maximum(excess - least, 0))
    alone = counts[work.window] == 1
    if alone.any():
        longer = _excess_over_own_steps(job, work, alone)
        excess = sums_by_step(job, work, longer)[:, :-1]
        typical += _compute_lateness(
            job, work, longer, excess, np.minimum(excess, _excess_over_every_rank(job, work))
        )
    np.subtract(work.work, typical, out=typical)
    return msgspec.structs.replace(work, typical=typical.astype(np.int64))


def _compute_lateness(
    job: DistributedJob, work: WorkWindows, longer: Int64, excess: Float64, late: Float64
) -> Float64:
    """Return float64[m], each window's part of the ns by which its rank is late in its step.

    longer  int64[m] ns that it works longer there; excess: float64[ranks, steps], the sums of these
    late    float64[ranks, steps], how much of these sums is lateness if it is enough
    """
    length = sums_by_step(job, work, work.work)
    late[(late <= MIN_LATE_SHARE * length[:, :-1]) | ~typical_job_steps(job)[:-1]] = 0
    ratio = np.zeros_like(length)
    np.divide(late, excess, out=ratio[:, :-1], where=excess > 0)
    lateness: Float64 = ratio[select(job.table.member, work.rows), select(job.table.step, work.rows)]
    lateness *= longer
    return lateness


def _excess_over_own_steps(job: DistributedJob, work: WorkWindows, alone: Bool) -> Int64:
    """Return int64[m] ns: in windows that no other rank has, beyond the same one in the rank's shortest step."""
    rows = np.flatnonzero(alone)
    rows = rows[np.append(judged_steps(job), False)[job.table.step[work.rows[rows]]]]
    member, step = job.table.member[work.rows[rows]], job.table.step[work.rows[rows]]
    same = group(member, ordinals(np.zeros(len(rows), np.bool_), member, step))
    longer = np.zeros_like(work.work)
    longer[rows] = work.work[rows] - lowest_by_number(same.which, work.work[rows], len(same))[same.which]
    return longer


def _excess_over_every_rank(job: DistributedJob, work: WorkWindows) -> Float64:
    """Return float64[ranks, steps]: ns beyond each rank's shortest step, less what that is on every rank.

    A longer batch adds as much to each rank, or the same share of its work: lateness is what exceeds both.
    """
    length, judged = sums_by_step(job, work, work.work)[:, :-1], judged_steps(job)
    shortest = length[:, judged].min(axis=1, initial=np.inf, keepdims=True)
    known = (shortest > 0) & np.isfinite(shortest)
    if not known.any():
        return np.zeros_like(length)
    rows = known[:, 0]
    added = (length[rows] - shortest[rows]).min(axis=0)
    ratio = (length[rows] / shortest[rows]).min(axis=0)
    beyond: Float64 = np.zeros_like(length)
    beyond[rows] = np.maximum(length[rows] - shortest[rows] - np.maximum(added, shortest[rows] * (ratio - 1)), 0)
    return beyond
