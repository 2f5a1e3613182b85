"""Find ranks that are late in turn, each in other steps.

The cause is one that all of them share, such as garbage collection or work whose size changes from batch to batch.

step     1     2     3     4     5     6
rank 0   late  .     .     late  .     .
rank 1   .     late  .     .     .     late     no rank is late in most steps, and nearly every step waits
rank 2   .     .     late  .     late  .
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.job import DistributedJob
from torch_tb_profiler.analyses.distributed.late_once import excess_by_step, judged_steps
from torch_tb_profiler.analyses.distributed.stragglers import StragglerActivity
from torch_tb_profiler.analyses.distributed.work_windows import WorkWindows

MIN_LATE_STEPS, MIN_LATE_SHARE = 4, 0.5
"""Fewest steps, and the smallest share of all, in which some rank is late by far,"""

MIN_TURN_SHARE = 0.05
"""as the latest rank exceeds what is typical by at least this share of a step"""

MIN_LATENESS_RATIO = 3.0
"""and by at least this many times what the second one does."""

MIN_LATE_RANKS = 3
"""Fewest ranks that are late in turn; with two ranks both."""

MAX_SHARE_OF_ONE, MAX_SHARE_OF_TWO = 0.5, 2 / 3
"""No rank is late in a larger share of these steps: of two ranks, one has to be late in half of them or more, and
often in four of six."""

MIN_NAMED_SHARE = 0.5
"""What the late ranks do is named if it makes up this share of their extra time."""


class LateInTurn(msgspec.Struct, frozen=True):
    """Steps in which another rank each is late.

    late, steps   number of steps in which a rank is late, and of all typical ones with communication
    ranks         how many ranks are late in at least one of them
    least, most   ns by which they are late
    per_step      ns by which the latest rank is late, mean over all typical steps, including those in which it
                  isn't by far: what it costs at most
    name          the frame or operator in which all of them spend it, or the kernel if it is `on_device`; "" where
                  there is no single one
    on_device     whether most of it is in kernels
    unrecorded    whether most of it is in nothing that is recorded
    """

    late: int
    steps: int
    ranks: int
    least: int
    most: int
    name: str
    per_step: float = 0.0
    on_device: bool = False
    unrecorded: bool = False


def find_late_in_turn(
    job: DistributedJob, work: WorkWindows, step_ns: float, activities: Sequence[StragglerActivity]
) -> LateInTurn | None:
    """Return how ranks are late in turn, or None if they aren't; `step_ns`: of a typical step."""
    excess = np.maximum(excess_by_step(job, work), 0.0)[:, judged_steps(job)]
    if excess.shape[0] < 2 or excess.shape[1] < MIN_LATE_STEPS:
        return None
    ordered = np.sort(excess, axis=0)
    first, second = ordered[-1], ordered[-2]
    is_late = (first >= MIN_TURN_SHARE * step_ns) & (first >= MIN_LATENESS_RATIO * second) & (first > 0)
    count = int(is_late.sum())
    times_late = np.bincount(excess.argmax(axis=0)[is_late], minlength=len(excess))
    ranks = int((times_late > 0).sum())
    if (
        count < max(MIN_LATE_STEPS, MIN_LATE_SHARE * len(is_late))
        or ranks < min(MIN_LATE_RANKS, len(excess))
        or times_late.max() > (MAX_SHARE_OF_TWO if len(excess) == 2 else MAX_SHARE_OF_ONE) * count
    ):
        return None
    late = first[is_late]
    on_device = _is_mostly(activities, "kernel")
    return LateInTurn(
        count,
        len(is_late),
        ranks,
        int(late.min()),
        int(late.max()),
        _find_common_name(activities, on_device),
        float(first.sum()) / len(is_late),
        on_device,
        _is_mostly(activities, "other"),
    )


def _is_mostly(activities: Sequence[StragglerActivity], category: str) -> bool:
    """Return whether every one of these ranks spends most of its extra time in a category of the overview."""
    return bool(activities) and all(
        each.excess > MIN_NAMED_SHARE * activity.excess
        for activity in activities
        for each in activity.categories
        if each.name == category
    )


def _find_common_name(activities: Sequence[StragglerActivity], on_device: bool) -> str:
    """Return the frame, operator or kernel in which all these ranks spend most of their extra time, or ""."""
    names: set[str] = set()
    for activity in activities:
        rows = activity.kernels[:1] if on_device else [*activity.frames[:1], *activity.host[:1]]
        large = [row.name for row in rows if row.excess > MIN_NAMED_SHARE * activity.excess]
        names.add(activity.short_names.get(large[0], large[0]) if large else "")
    return names.pop() if len(names) == 1 else ""
