"""Why a rank is late: the kind of cause, and the operator, frame, or kernel that shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.comparison import RankComparison
from torch_tb_profiler.analyses.distributed.costs import Suspect
from torch_tb_profiler.analyses.distributed.job import DistributedJob
from torch_tb_profiler.analyses.distributed.late_once import LateOnce, count_typical_steps
from torch_tb_profiler.analyses.distributed.stragglers import RankTime, StragglerActivity, straggler_activity
from torch_tb_profiler.analyses.distributed.uneven_work import (
    ResizedKernel,
    find_resized_kernel,
    runs_more_kernels,
    runs_more_often,
)
from torch_tb_profiler.analyses.distributed.work_windows import WorkWindows
from torch_tb_profiler.base.arrays import median
from torch_tb_profiler.base.markers import is_data_loading

MIN_DEVICE_SHARE = 0.5
"""The device is the cause if kernels make up at least this share of the difference to the median rank."""

MIN_DIVISIBLE_SHARE = 0.9
"""Other ranks could take over a rank's extra work if kernels of larger sizes make up at least this share of it."""

MIN_NAMED_SHARE = 0.2
"""A frame, operator, or kernel is named as the cause if it makes up more than this share of the difference."""

MAJORITY_SHARE = 0.5
"""A frame is named only if at least this share of its time exceeds the median rank's; the operator with more than
this share of the difference is named beside it."""

MIN_SLOWDOWN = 1.02
"""Smallest ratio of kernel times for which a device is called slower."""

MIN_SLOW_SHARE = 0.8
"""A device is called slower only if kernels that make up at least this share of its time are slower."""

MIN_EQUAL_SHARE = 0.5
"""A device's speed is known only if kernels of equal size on other ranks make up this share of its time."""

CauseKind = Literal["host", "data_loading", "more_work", "longer_kernels", "slower_device", "slower_link", "other"]

_CATEGORY_CAUSES: dict[str, CauseKind] = {
    "dataloader": "data_loading",
    "cpu_exec": "host",
    "runtime": "host",
}


_Kernel = tuple[str, str]
"""Name and size of a kernel."""


class StragglerCause(msgspec.Struct, frozen=True):
    """What a late rank spends more time on than the median rank; ns per step.

    kind    host: an operator or frame; data_loading; more_work: more or larger kernels; longer_kernels:
            kernels take longer, on inputs of the same or an unrecorded size; slower_device: all its kernels
            of equal size take longer; slower_link: its transfers take longer; other: `name` is a category of
            the overview
    where   host: `name` is an operator or annotation; frame: a Python frame of user code; device: a kernel;
            category: a category of the overview
    median  None if it is not among the median rank's largest before each of these collectives
    excess  beyond the median rank, at least
    collective  an example: the collective for which the rank was latest
    ratio   of a slower device: time of its kernels over that of the same kernels on the median rank
    resized  of more work: the kernel whose size shows it, None if the rank runs additional kernels
    divisible  nearly all of the difference is kernels of larger sizes
    operator  for a frame: the operator or annotation that makes up most of the difference, None if none does
    short_name  of a named kernel
    """

    kind: CauseKind
    member: int
    where: Literal["host", "frame", "device", "category"]
    name: str
    time: float
    median: float | None
    excess: float
    collective: int | None
    ratio: float | None = None
    operator: str | None = None
    short_name: str | None = None
    resized: ResizedKernel | None = None
    divisible: bool = False


class SlowerDevices(msgspec.Struct, frozen=True):
    """Ranks whose kernels take longer than those of equal size on all other ranks, by what ratio."""

    members: tuple[int, ...]
    others: tuple[int, ...]
    lowest: float
    highest: float


def find_cause(
    comparison: RankComparison, suspect: Suspect, member: int, activities: Sequence[StragglerActivity]
) -> StragglerCause | None:
    """Return why a rank of `suspect` is late, None if its activity is not recorded."""
    if suspect.reason == "transfer":
        return StragglerCause(
            "slower_link", member, "category", "communication", suspect.cost, None, suspect.cost, None
        )
    activity = next((activity for activity in activities if activity.member == member), None)
    return None if activity is None else find_work_cause(comparison, activity)


def find_work_cause(comparison: RankComparison, activity: StragglerActivity) -> StragglerCause | None:
    """Return why a rank works longer than is typical, None if nothing that is recorded takes longer."""
    member, latest = activity.member, activity.latest
    steps = count_typical_steps(comparison.job, member)
    kernel = next(category for category in activity.categories if category.name == "kernel")
    on_device = _is_on_device(activity)
    speed = _compare_kernel_speed(comparison.job, member) if on_device else None
    if speed is not None and speed.uniform:
        return StragglerCause(
            kind="slower_device",
            member=member,
            where="device",
            name="kernel",
            time=kernel.time / steps,
            median=kernel.most / steps,
            excess=kernel.excess / steps,
            collective=latest,
            ratio=speed.ratio,
        )
    extra = activity.excess / steps
    resized = find_resized_kernel(comparison.job, member, extra) if on_device else None
    divisible = find_resized_kernel(comparison.job, member, extra, MIN_DIVISIBLE_SHARE) is not None
    named = _find_largest(activity.kernels if on_device else activity.host, MIN_NAMED_SHARE * activity.excess)
    frame = None if on_device else _find_largest(activity.frames, MIN_NAMED_SHARE * activity.excess)
    if frame is not None and frame.excess < MAJORITY_SHARE * frame.time:
        frame = None  # such as the training loop, in which every rank spends its time
    where: Literal["host", "frame", "device"] = "device" if on_device else "host"
    kind: CauseKind = "host"
    if on_device:
        more = resized is not None or named is None or runs_more_often(comparison.job, member, named.name)
        kind = "more_work" if more else "longer_kernels"
    operator = None
    if not on_device and named is not None and is_data_loading(named.name):
        kind = "data_loading"
    elif frame is not None:
        majority = _find_largest(activity.host, MAJORITY_SHARE * activity.excess)
        named, where, operator = frame, "frame", None if majority is None else majority.name
    if named is not None:
        return StragglerCause(
            kind=kind,
            member=member,
            where=where,
            name=named.name,
            time=named.time / steps,
            median=None if named.median is None else named.median / steps,
            excess=named.excess / steps,
            collective=latest,
            operator=operator,
            short_name=activity.short_names.get(named.name) if where == "device" else None,
            resized=resized,
            divisible=divisible and resized is not None,
        )
    category = max(activity.categories, key=lambda category: category.excess)
    if category.excess <= MIN_NAMED_SHARE * activity.excess:
        return None
    time, typical, excess = (each / steps for each in (category.time, category.most, category.excess))
    category_kind = _CATEGORY_CAUSES.get(category.name, "other")
    if category.name == "kernel":
        category_kind = "more_work" if runs_more_kernels(comparison.job, member) else "longer_kernels"
    return StragglerCause(category_kind, member, "category", category.name, time, typical, excess, latest)


def _is_on_device(activity: StragglerActivity) -> bool:
    """Return whether kernels make up most of what a rank works longer.

    While this device of the median rank waits for the late rank, another one may compute, which counts as kernels
    there, too. So the category grows by less than kernels take longer, or not at all, and no other category grows
    instead: what those leave of the difference is the device's if its kernels take that much longer.
    """
    least = MIN_DEVICE_SHARE * activity.excess
    on_device = sum(category.excess for category in activity.categories if category.name == "kernel")
    elsewhere = sum(category.excess for category in activity.categories if category.name != "kernel")
    longer = sum(kernel.excess for kernel in activity.kernels if kernel.excess > 0)
    return on_device >= least or min(activity.excess - elsewhere, longer) >= least


def find_slower_devices(job: DistributedJob) -> SlowerDevices | None:
    """Return the ranks whose devices are slower than all others, or None if all are about as fast.

    The ranks are parted where their paces differ most, as no median tells which are slow if that many are.
    """
    paces = _compute_paces(job)
    order = sorted(paces, key=lambda member: paces[member])
    if len(order) < 2 or len(order) < len(job.sources):
        return None
    gaps = [paces[slow] / paces[fast] for fast, slow in pairwise(order)]
    first_slow = int(np.argmax(gaps)) + 1
    fast, slow = order[:first_slow], sorted(order[first_slow:])
    typical = _compute_median_times(job, fast)
    speeds = [_compare_speed(job, member, typical) for member in slow]
    ratios = [speed.ratio for speed in speeds if speed is not None and speed.uniform]
    if len(ratios) < len(slow):
        return None
    return SlowerDevices(tuple(slow), tuple(sorted(fast)), min(ratios), max(ratios))


def _compute_paces(job: DistributedJob) -> dict[int, float]:
    """Return the time of each rank's kernels over that of as many calls on the fastest rank, by member.

    Only kernels that another rank runs on equal sizes count; a rank without such kernels has no pace.
    """
    times = [
        {
            (source.summary.names[total.name], total.size): (total.time, total.calls)
            for total in source.summary.kernels
            if total.size and total.calls
        }
        for source in job.sources
    ]
    fastest_call: dict[_Kernel, float] = {}
    ranks: Counter[_Kernel] = Counter()
    for each in times:
        ranks.update(each.keys())
        for key, (time, calls) in each.items():
            fastest_call[key] = min(fastest_call.get(key, np.inf), time / calls)
    paces = {}
    for member, each in enumerate(times):
        shared = [key for key in each if ranks[key] > 1]
        fastest = sum(each[key][1] * fastest_call[key] for key in shared)
        if fastest > 0:
            paces[member] = sum(each[key][0] for key in shared) / fastest
    return paces


def name_late_once(comparison: RankComparison, work: WorkWindows, once: LateOnce) -> LateOnce:
    """Return `once` with what the rank does in these steps beyond the median rank; `work`: of all steps."""
    job = comparison.job
    late = np.isin(job.table.step[work.rows], [job.steps.index(name) for name in once.steps])
    during = msgspec.structs.replace(work, typical=np.where(late, work.typical, work.work))
    for activity in straggler_activity(comparison, during, [once.member]):
        # Where the device works longer, the host just waits for it.
        for times in (activity.kernels,) if _is_on_device(activity) else (activity.frames, activity.host):
            largest = _find_largest(times, MAJORITY_SHARE * activity.excess)
            if largest is not None:
                name = activity.short_names.get(largest.name, largest.name)
                return msgspec.structs.replace(once, name=name)
    return once


def _find_largest(times: Sequence[RankTime], min_excess: float) -> RankTime | None:
    """Return the first, largest time if its excess is more than `min_excess`."""
    return times[0] if times and times[0].excess > min_excess else None


class _KernelSpeed(msgspec.Struct, frozen=True):
    """The speed of a rank's kernels compared with kernels of equal size on other ranks.

    ratio    time of the rank's kernels over that of the same number of calls on the median rank
    uniform  nearly all of them take longer, so that the device is slower and not the work larger
    """

    ratio: float
    uniform: bool


def _compare_kernel_speed(job: DistributedJob, member: int) -> _KernelSpeed | None:
    """Return the speed of a rank's kernels that others run on equal sizes, None if they are too small a part."""
    others = [position for position in range(len(job.sources)) if position != member]
    return _compare_speed(job, member, _compute_median_times(job, others))


def _compute_median_times(job: DistributedJob, members: Sequence[int]) -> dict[_Kernel, float]:
    """Return the median over these ranks of how long a call of each kernel takes on average, in ns."""
    means: dict[_Kernel, list[float]] = {}
    for summary in (job.sources[member].summary for member in members):
        for total in summary.kernels:
            if total.calls:
                key = summary.names[total.name], total.size
                means.setdefault(key, []).append(total.time / total.calls)
    return {key: median(times) for key, times in means.items()}


def _compare_speed(
    job: DistributedJob, member: int, typical_times: Mapping[_Kernel, float]
) -> _KernelSpeed | None:
    summary = job.sources[member].summary
    keys = [(summary.names[total.name], total.size) for total in summary.kernels]
    pairs = [
        (total.time, total.calls * typical_times[key])
        for total, key in zip(summary.kernels, keys, strict=True)
        if total.size and key in typical_times
    ]
    if sum(time for time, _ in pairs) < MIN_EQUAL_SHARE * sum(total.time for total in summary.kernels):
        return None
    actual, typical = np.array(pairs, np.float64).reshape(-1, 2).T
    if typical.sum() == 0:
        return None
    ratio = float(actual.sum() / typical.sum())
    slower = actual[actual >= typical * (1 + (ratio - 1) / 2)].sum() >= MIN_SLOW_SHARE * actual.sum()
    return _KernelSpeed(ratio, bool(ratio >= MIN_SLOWDOWN and len(pairs) > 1 and slower))
