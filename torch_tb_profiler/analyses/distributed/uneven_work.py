"""Work that is spread unevenly over the ranks: the same kernels run on larger or smaller inputs.

    rank   0     1     2     3
    gemm  [100] [100] [100] [60]     rank 3 has 0.6 times the work and waits; spread evenly, each would have 0.9

Kernels are of equal size if grid and input shapes of their operators are equal, as far as a file records them.
"""

from __future__ import annotations

from collections import Counter

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.job import DistributedJob, RankSource
from torch_tb_profiler.analyses.distributed.medians import medians_without_each
from torch_tb_profiler.analyses.distributed.operations import select
from torch_tb_profiler.analyses.distributed.order_matching import ordinals
from torch_tb_profiler.analyses.distributed.work_windows import WorkWindows
from torch_tb_profiler.analyses.shared.grouping import group
from torch_tb_profiler.base.arrays import median, sums_by_number
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.trace import Float64, Int64

MIN_DIFFERENCE = 0.05
"""Smallest relative difference of a rank's kernel time from the median rank's that is worth naming."""

MIN_RESIZED_SHARE = 0.5
"""Smallest share of such a difference that kernels of other sizes make up."""


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
    """Return the windows with the mean of all ranks as typical, as if the work were spread evenly.

    Only what a rank does in each step counts: how long it works more or less than the mean, averaged over
    the steps.
    """
    member, step = (select(column, work.rows) for column in (job.table.member, job.table.step))
    same = group(member, ordinals(np.zeros(len(work.rows), np.bool_), member, step))
    windows = int(work.window.max(initial=-1)) + 1
    counts = np.bincount(work.window, minlength=windows)
    means = sums_by_number(work.window, work.work, windows) / np.maximum(counts, 1)
    # In place, as few copies of a large job's columns as can be.
    times = means[work.window]
    np.subtract(work.work, times, out=times)
    mean_deviation = np.bincount(same.which, times, len(same)) / np.maximum(same.counts, 1)
    mean_deviation.take(same.which, out=times, mode="clip")
    np.subtract(work.work, times, out=times)
    typical: Int64 = np.maximum(times, 0, out=times).astype(np.int64)
    return msgspec.structs.replace(work, typical=typical)


def find_uneven_work(job: DistributedJob) -> UnevenWork | None:
    """Return the rank whose work differs most from the median rank's, or None if none is worth naming."""
    times = np.array([_time_per_step(source) for source in job.sources], np.float64)
    if len(times) < 2 or times.min() <= 0:
        return None
    typical = medians_without_each(times)
    ratio = times / typical
    difference = np.abs(ratio - 1)
    for member in np.argsort(-difference, kind="stable").tolist():
        if difference[member] < MIN_DIFFERENCE:
            break
        kernel = find_resized_kernel(job, member, float(times[member] - typical[member]))
        if kernel is not None:
            return UnevenWork(member, float(ratio[member]), kernel)
    return None


def find_resized_kernel(
    job: DistributedJob, member: int, difference: float, share: float = MIN_RESIZED_SHARE
) -> ResizedKernel | None:
    """Return the kernel of other sizes with most of a difference (ns per step).

    None if sizes don't explain `share` of it.
    """
    mine, kernels = _group_rank_kernels(job.sources[member]), _group_kernels_by_name(job)
    explained: list[tuple[float, ResizedKernel]] = []
    for name, here in mine.items():
        there = kernels[name].median_of_others(member)
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
    mine = _group_rank_kernels(job.sources[member]).get(name)
    if mine is None:
        return False
    others = _group_kernels_by_name(job)[name].median_of_others(member)
    return others is None or mine.calls > (1 + MIN_DIFFERENCE) * others.calls


def runs_more_kernels(job: DistributedJob, member: int) -> bool:
    """Return whether a rank runs more kernels per step than the median of the others, of whatever names."""
    calls = [
        sum(total.calls for total in source.summary.kernels) / max(len(source.summary.steps), 1)
        for source in job.sources
    ]
    mine = calls.pop(member)
    return bool(calls) and mine > (1 + MIN_DIFFERENCE) * median(calls)


def _time_per_step(source: RankSource) -> float:
    return sum(total.time for total in source.summary.kernels) / max(len(source.summary.steps), 1)


def _group_rank_kernels(source: RankSource) -> dict[str, _NamedKernel]:
    """Return the kernels of a rank by name."""
    summary = source.summary
    steps = max(len(summary.steps), 1)
    found: dict[str, _NamedKernel] = {}
    for total in summary.kernels:  # most time first, so the first size has the most
        name = summary.names[total.name]
        known = found.get(name, _NamedKernel(0.0, 0.0, total.size))
        found[name] = _NamedKernel(known.time + total.time / steps, known.calls + total.calls / steps, known.size)
    return found


class _KernelOnRanks:
    """A kernel on each rank that runs it, with the median of all ranks but one."""

    def __init__(self, ranks: dict[int, _NamedKernel]) -> None:
        kernels = list(ranks.values())
        self._sizes = {member: kernel.size for member, kernel in ranks.items()}
        self._place = {member: place for place, member in enumerate(ranks)}
        self._times, self._calls = (
            _medians_of_others([getattr(each, name) for each in kernels]) for name in ("time", "calls")
        )
        first: dict[str, list[int]] = {}  # two ranks of each size
        for member, size in self._sizes.items():
            if len(known := first.setdefault(size, [])) < 2:
                known.append(member)
        self._first, self._counts = first, Counter(self._sizes.values())
        # Without a rank, the most frequent size is one of the first two, as only that of the rank is rarer by one.
        self._frequent = sorted(first, key=lambda size: (-self._counts[size], first[size][0]))[:2]

    def median_of_others(self, member: int) -> _NamedKernel | None:
        """Return the median of all ranks that run it but `member`; the size is that of most of them."""
        if len(self._place) == 1:
            return None
        place, mine = self._place[member], self._sizes[member]
        left = []
        for size in dict.fromkeys([*self._frequent, mine]):
            members = [each for each in self._first[size] if each != member]
            if members:
                left.append((-(self._counts[size] - (size == mine)), members[0], size))
        return _NamedKernel(float(self._times[place]), float(self._calls[place]), min(left)[2])


def _medians_of_others(values: list[float]) -> Float64:
    column = np.array(values, np.float64)
    return medians_without_each(column) if len(column) > 1 else column


@derived
def _group_kernels_by_name(job: DistributedJob) -> dict[str, _KernelOnRanks]:
    """Return each kernel on the ranks that run it: every rank is compared with the median of all others."""
    ranks: dict[str, dict[int, _NamedKernel]] = {}
    for member, source in enumerate(job.sources):
        for name, kernel in _group_rank_kernels(source).items():
            ranks.setdefault(name, {})[member] = kernel
    return {name: _KernelOnRanks(kernels) for name, kernels in ranks.items()}
