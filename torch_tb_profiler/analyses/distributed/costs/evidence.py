"""Whether the lateness of ranks is more than the variation from step to step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from torch_tb_profiler.analyses.distributed.costs.own_work import OwnWork
from torch_tb_profiler.analyses.distributed.job import Job
from torch_tb_profiler.analyses.distributed.matching.order import ordinals
from torch_tb_profiler.analyses.shared.grouping import group
from torch_tb_profiler.base.median import median
from torch_tb_profiler.model.trace import Float64, Int64

_T = (159.2, 15.8, 8.05, 5.95, 5.03, 4.52, 4.21, 3.99)
"""Student's t that chance exceeds twice in a thousand, for 1 to 8 degrees of freedom."""

_SPIKE = 6.0
"""A step stands out from the others if it exceeds what varies so many times."""

_CLEAR = 4.0
"""The mean of a rank stands out if it exceeds what the other ranks vary by so many times."""

_ENOUGH = 6
"""So many steps of other ranks tell how much they vary."""


def stands_out(job: Job, own: OwnWork, members: Sequence[int]) -> bool:
    """These ranks work longer than usual: in all steps, or in some by far.

    What can vary is how long the other ranks work beyond the usual, and from step to step these ranks themselves.
    With one step, or two of few ranks, there is nothing to tell variation from: what happened is said.
    """
    if not _beyond_jitter(job, own, members):
        return False
    excess = _by_step(job, own)
    late = excess[list(members)].mean(axis=0)
    others = np.maximum(np.delete(excess, list(members), axis=0), 0.0).ravel()
    steps = len(late)
    if len(others) >= _ENOUGH and float(late.mean()) > _CLEAR * _spread(others):
        return True
    if steps < 3:
        return len(others) < _ENOUGH and bool((late > 0).all())
    deviation = float(late.std(ddof=1)) / np.sqrt(steps)
    if float(late.mean()) > _T[min(steps - 1, len(_T)) - 1] * deviation:
        return True
    rest = np.append(others, np.delete(late, late.argmax()))
    return float(late.max()) > _SPIKE * _spread(rest)


def _beyond_jitter(job: Job, own: OwnWork, members: Sequence[int]) -> bool:
    """The sum of what these ranks work longer exceeds what their windows vary from step to step, or with one step
    from window to window. Deviations are shares of the work, the usual one or that of these ranks if it is longer
    in most steps, as longer windows vary more; short windows, which may vary by many times their length, count as
    one of mean length."""
    mine = np.flatnonzero(np.isin(job.table.member[own.rows], members) & (own.slack == 0))
    member, step = job.table.member[own.rows[mine]], job.table.step[own.rows[mine]]
    place = group(member, ordinals(np.zeros(len(mine), np.bool_), member, step))
    steps = int(place.counts.max(initial=0))
    usual = np.maximum(own.usual[mine], own.usual[mine].mean()) if len(mine) else np.zeros(0)
    if steps > 1:
        usual = np.maximum(usual, _medians(own.work[mine], place.which))
    share = own.excess[mine] / np.maximum(usual, 1.0)
    which = place.which if steps > 1 else np.zeros(len(mine), np.int64)
    middles = _medians(share, which)
    deviation = np.abs(share - middles)
    if steps > 1 and steps % 2:  # the median of an odd number is one of them, which says nothing of how they vary
        order = np.lexsort((deviation, which))
        first = np.diff(which[order], prepend=-1) != 0
        deviation = deviation[order[~first]]
    if len(deviation) == 0:
        return True
    sigma = 1.4826 * median(deviation) * np.sqrt(steps / max(steps - 1, 1))
    noise = sigma * float(np.sqrt((usual**2).sum()))
    freedom = len(deviation) * (steps - 1) // steps if steps > 1 else len(deviation) - 1
    return bool(own.excess[mine].sum() > _T[min(max(freedom, 1), len(_T)) - 1] * noise)


def _medians(values: npt.NDArray[Any], which: Int64) -> Float64:
    """float64[k]: the median of each value's group."""
    middles = np.array([median(values[which == each]) for each in range(int(which.max(initial=-1)) + 1)])
    return middles[which] if len(values) else np.zeros(0)


def _spread(values: Float64) -> float:
    """Root of the mean square."""
    return float(np.sqrt((values**2).mean())) if len(values) else 0.0


def _by_step(job: Job, own: OwnWork) -> Float64:
    """float64[ranks, steps] ns that each rank works longer than usual."""
    _, step = np.unique(job.table.step[own.rows], return_inverse=True)
    sums = np.zeros((len(job.sources), int(step.max(initial=0)) + 1))
    np.add.at(sums, (job.table.member[own.rows], step.reshape(-1)), own.excess)
    return sums
