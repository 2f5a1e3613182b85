"""Whether the lateness of ranks exceeds the variation from step to step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from torch_tb_profiler.analyses.distributed.job import DistributedJob
from torch_tb_profiler.analyses.distributed.late_once import excess_by_step, judged_steps, typical_job_steps
from torch_tb_profiler.analyses.distributed.order_matching import ordinals
from torch_tb_profiler.analyses.distributed.work_windows import WorkWindows, windows_of_ranks
from torch_tb_profiler.analyses.shared.grouping import group
from torch_tb_profiler.base.arrays import median
from torch_tb_profiler.model.trace import Float64, Int64

_T_QUANTILES = (159.2, 15.8, 8.05, 5.95, 5.03, 4.52, 4.21, 3.99)
"""Student's t that chance exceeds twice in a thousand, for 1 to 8 degrees of freedom."""

_MIN_SPIKE_RATIO = 6.0
"""One step is significant if its excess is more than this many times the variation."""

_MIN_MEAN_RATIO = 4.0
"""The mean excess of ranks is significant if it is more than this many times the variation of the other ranks."""

_MIN_STEPS = 3
"""The scatter of fewer steps of a rank says too little for a test."""

_MIN_OTHER_STEPS = 6
"""Fewest steps of other ranks that show how much these vary."""

_MAD_TO_SIGMA = 1.4826
"""Ratio of the standard deviation to the median absolute deviation of a normal distribution."""


def is_significant(job: DistributedJob, work: WorkWindows, members: Sequence[int]) -> bool:
    """Return whether these ranks work longer than is typical in all steps, or far longer in some.

    Two things can vary: how long the other ranks work beyond the typical time, and these ranks from step to step.
    With one step, or two of few ranks, variation can't be measured, and the observed lateness counts.
    """
    if not _exceeds_jitter(job, work, members):
        return False
    excess = _sum_excess_by_step(job, work)
    late = excess[list(members)].mean(axis=0)
    others = np.maximum(np.delete(excess, list(members), axis=0), 0.0).ravel()
    steps = len(late)
    if len(others) >= _MIN_OTHER_STEPS and float(late.mean()) > _MIN_MEAN_RATIO * _root_mean_square(others):
        return True
    if steps < _MIN_STEPS:
        return len(others) < _MIN_OTHER_STEPS and bool((late > 0).all())
    deviation = float(late.std(ddof=1)) / np.sqrt(steps)
    if float(late.mean()) > _T_QUANTILES[min(steps - 1, len(_T_QUANTILES)) - 1] * deviation:
        return True
    rest = np.append(others, np.delete(late, late.argmax()))
    return float(late.max()) > _MIN_SPIKE_RATIO * _root_mean_square(rest)


def _exceeds_jitter(job: DistributedJob, work: WorkWindows, members: Sequence[int]) -> bool:
    """Return whether the total excess of these ranks exceeds what their windows vary.

    The variation is from step to step or, with one step, from window to window. Deviations are shares of the work
    (the typical work, or that of these ranks if it is longer in most steps), as longer windows vary more. Windows
    shorter than the mean, which may vary by many times their length, count as one of mean length.

    Where windows are longer in some steps, as after an evaluation, additional work of a rank takes as long as in
    the others, and what a slower device adds is as large a share: what varies less is the variation.
    """
    mine = windows_of_ranks(job, work, members)
    mine = mine[(work.slack[mine] == 0) & typical_job_steps(job)[job.table.step[work.rows[mine]]]]
    excess = work.work[mine] - work.typical[mine]
    member, step = job.table.member[work.rows[mine]], job.table.step[work.rows[mine]]
    place = group(member, ordinals(np.zeros(len(mine), np.bool_), member, step))
    steps = int(place.counts.max(initial=0))
    base = np.maximum(work.typical[mine], work.typical[mine].mean()) if len(mine) else np.zeros(0)
    if steps > 1:
        base = np.maximum(base, _group_medians(work.work[mine], place.which))
    base = np.maximum(base, 1.0)
    which = place.which if steps > 1 else np.zeros(len(mine), np.int64)
    deviations = [excess / base - _group_medians(excess / base, which)]
    if steps > 1:
        deviations.append((excess - _group_medians(excess, which)) / base)
    left = [_drop_medians(np.abs(each), which, steps) for each in deviations]
    if len(left[0]) == 0:
        return True
    sigma = _MAD_TO_SIGMA * min(median(each) for each in left) * np.sqrt(steps / max(steps - 1, 1))
    noise = sigma * float(np.sqrt((base**2).sum()))
    freedom = len(left[0]) * (steps - 1) // steps if steps > 1 else len(left[0]) - 1
    return bool(excess.sum() > _T_QUANTILES[min(max(freedom, 1), len(_T_QUANTILES)) - 1] * noise)


def _drop_medians(deviation: Float64, which: Int64, steps: int) -> Float64:
    """Return the deviations without one of each group where the median of an odd number is one of them."""
    if steps == 1 or steps % 2 == 0:
        return deviation
    order = np.lexsort((deviation, which))
    first = np.diff(which[order], prepend=-1) != 0
    left: Float64 = deviation[order[~first]]
    return left


def _group_medians(values: npt.NDArray[Any], which: Int64) -> Float64:
    """Return float64[k], the median of each value's group."""
    middles = np.array([median(values[which == i]) for i in range(int(which.max(initial=-1)) + 1)])
    return middles[which] if len(values) else np.zeros(0)


def _root_mean_square(values: Float64) -> float:
    return float(np.sqrt((values**2).mean())) if len(values) else 0.0


def _sum_excess_by_step(job: DistributedJob, work: WorkWindows) -> Float64:
    """Return float64[ranks, typical steps with any window], the ns that each rank works longer than is typical."""
    return excess_by_step(job, work)[:, judged_steps(job)]
