"""Work that is spread unevenly over the ranks: the same kernels run on larger or smaller inputs.

    rank   0     1     2     3
    gemm  [100] [100] [100] [60]     rank 3 has 0.6 times the work and waits; spread evenly, each would have 0.9

Kernels are of equal size if grid and input shapes of their operators are equal, as far as a file records them.
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.job import DistributedJob, RankSource
from torch_tb_profiler.analyses.distributed.order_matching import ordinals
from torch_tb_profiler.analyses.distributed.work_windows import WorkWindows
from torch_tb_profiler.analyses.shared.grouping import group
from torch_tb_profiler.base.arrays import median
from torch_tb_profiler.model.trace import Int64

MIN_DIFFERENCE = 0.05
"""Smallest relative difference of a rank's kernel time from the median rank's that is worth naming,"""

MIN_RESIZED_SHARE = 0.5
"""of which kernels of other sizes make up at least this share."""


class ResizedKernel(msgspec.Struct, frozen=True):
    """A kernel that runs on other sizes than on the median rank: its name and both sizes."""

    name: str
    size: str
    typical_size: str


class UnevenWork(msgspec.Struct, frozen=True):
    """A rank with more or less work than the median rank.

    ratio   time of its kernels over that of the median rank's
    kernel  the kernel with the largest difference that other sizes explain
    """

    member: int
    ratio: float
    kernel: ResizedKernel


def even_split(job: DistributedJob, work: WorkWindows) -> WorkWindows:
    """Return the windows such that what is typical is the mean of all ranks, which spreading the work evenly
    gives.

    Only what a rank does in each step counts: how long it works more or less than the mean, averaged over
    the steps.
    """
    member, step = job.table.member[work.rows], job.table.step[work.rows]
    windows = group(work.window)
    means = windows.sums(work.work) / windows.counts
    deviation = work.work - means[windows.which]
    nth = ordinals(np.zeros(len(work.rows), np.bool_), member, step)
    same = group(member, nth)
    mean_deviation = np.bincount(same.which, deviation, len(same)) / np.maximum(same.counts, 1)
    typical: Int64 = np.maximum(work.work - mean_deviation[same.which], 0).astype(np.int64)
    return msgspec.structs.replace(work, typical=typical)


def find_uneven_work(job: DistributedJob) -> UnevenWork | None:
    """Return the rank whose work differs most from the median rank's, or None if none is worth naming."""
    times = [_time_per_step(source) for source in job.sources]
    if len(times) < 2 or min(times) <= 0:
        return None
    found: list[UnevenWork] = []
    for member, time in enumerate(times):
        typical = median(times[:member] + times[member + 1 :])
        kernel = find_resized_kernel(job, member, time - typical)
        if abs(time / typical - 1) >= MIN_DIFFERENCE and kernel is not None:
            found.append(UnevenWork(member, time / typical, kernel))
    return max(found, key=lambda each: abs(each.ratio - 1), default=None)


def find_resized_kernel(
    job: DistributedJob, member: int, difference: float, share: float = MIN_RESIZED_SHARE
) -> ResizedKernel | None:
    """Return the kernel of other sizes with most of a difference (ns per step), or None if sizes don't explain
    `share` of it."""
    mine, others = _by_name(job.sources[member]), _others_by_name(job, member)
    explained: list[tuple[float, ResizedKernel]] = []
    for name, here in mine.items():
        there = others.get(name)
        if there is None or not here.size or not there.size or here.size == there.size:
            continue
        part = here.time - there.time
        if part * difference > 0:
            explained.append((abs(part), ResizedKernel(name, here.size, there.size)))
    if sum(part for part, _ in explained) < share * abs(difference):
        return None
    return max(explained, key=lambda each: each[0])[1] if explained else None


class _NamedKernel(msgspec.Struct, frozen=True):
    """Kernels of one name on a rank: ns and calls per step, and the size with most of the time, "" if unknown."""

    time: float
    calls: float
    size: str


def runs_more_often(job: DistributedJob, member: int, name: str) -> bool:
    """Return whether a rank runs a kernel more often per step than others, or is the only one that runs it."""
    mine, others = _by_name(job.sources[member]).get(name), _others_by_name(job, member).get(name)
    return mine is not None and (others is None or mine.calls > (1 + MIN_DIFFERENCE) * others.calls)


def _time_per_step(source: RankSource) -> float:
    return sum(total.time for total in source.summary.kernels) / max(len(source.summary.steps), 1)


def _by_name(source: RankSource) -> dict[str, _NamedKernel]:
    summary = source.summary
    steps = max(len(summary.steps), 1)
    found: dict[str, _NamedKernel] = {}
    for total in summary.kernels:  # most time first, so the first size has the most
        name = summary.names[total.name]
        known = found.get(name, _NamedKernel(0.0, 0.0, total.size))
        found[name] = _NamedKernel(known.time + total.time / steps, known.calls + total.calls / steps, known.size)
    return found


def _others_by_name(job: DistributedJob, member: int) -> dict[str, _NamedKernel]:
    """Return the kernels of the median of the other ranks; the size is that of most of them."""
    rows: dict[str, list[_NamedKernel]] = {}
    for position, source in enumerate(job.sources):
        if position != member:
            for name, kernel in _by_name(source).items():
                rows.setdefault(name, []).append(kernel)
    found = {}
    for name, kernels in rows.items():
        sizes = [kernel.size for kernel in kernels]
        found[name] = _NamedKernel(
            median([kernel.time for kernel in kernels]),
            median([kernel.calls for kernel in kernels]),
            max(sizes, key=sizes.count),
        )
    return found
