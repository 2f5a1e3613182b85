"""Why a rank is late: the class of the cause, and what shows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from torch_tb_profiler.analyses.distributed.comparison import Comparison
from torch_tb_profiler.analyses.distributed.costs.costs import Suspect
from torch_tb_profiler.analyses.distributed.costs.pace import pace
from torch_tb_profiler.analyses.distributed.meanwhile import Meanwhile, RankTime
from torch_tb_profiler.base.markers import is_data_loading

ON_DEVICE = 0.5
"""The device is the cause if kernels make up at least this share of the difference to the median rank."""

NAMED_CAUSE = 0.2
"""A Python frame, operator or kernel that makes up at least this share of the difference is named as the cause."""

MOST = 0.5
"""A frame is named of whose time the median rank does not spend this share; beside it, the operator that makes up
this share of the difference."""

CauseKind = Literal["host", "data_loading", "more_work", "slower_device", "slower_link", "other"]


_OF_CATEGORY: dict[str, CauseKind] = {
    "kernel": "more_work",
    "dataloader": "data_loading",
    "cpu_exec": "host",
    "runtime": "host",
}


class Cause(msgspec.Struct, frozen=True):
    """What a late rank spends more time on than the median rank; ns per step.

    kind    host: an operator or frame; data_loading; more_work: more or larger kernels; slower_device: all its
            kernels take longer; slower_link: so do its transfers; other: `name` is a category of the overview
    where   host: `name` is an operator or annotation; frame: a Python frame of the user's code; device: a kernel;
            category: one of the overview's
    median  None where it is not among the median rank's largest
    ratio   of a slower device: time of its kernels over that of the same ones of the median rank
    short_name  of a kernel that is named
    operator  beside a frame: the operator or annotation that makes up most of the difference, None if none does
    collective  where the rank was latest: an example
    """

    kind: CauseKind
    member: int
    where: Literal["host", "frame", "device", "category"]
    name: str
    time: float
    median: float | None
    collective: int | None
    ratio: float | None = None
    operator: str | None = None
    short_name: str | None = None


def cause_of(comparison: Comparison, suspect: Suspect, member: int, rows: Sequence[Meanwhile]) -> Cause | None:
    """None if nothing is recorded of what it did."""
    if suspect.why == "transfer":
        return Cause("slower_link", member, "category", "communication", suspect.cost, None, None)
    row = next((each for each in rows if each.member == member), None)
    return None if row is None else work_cause(comparison, row)


def work_cause(comparison: Comparison, row: Meanwhile) -> Cause:
    """Why a rank works longer than usual."""
    steps = max(len(comparison.sources[row.member].summary.steps), 1)
    kernel = next(each for each in row.categories if each.name == "kernel")
    on_device = kernel.excess >= ON_DEVICE * row.excess
    speed = pace(comparison.job, row.member) if on_device else None
    if speed is not None and speed.uniform:
        usual = (kernel.median or 0) / steps
        return Cause(
            "slower_device", row.member, "device", "kernel", kernel.time / steps, usual, row.latest, speed.ratio
        )
    named = _largest(row.kernels if on_device else row.host, NAMED_CAUSE * row.excess)
    frame = None if on_device else _largest(row.frames, NAMED_CAUSE * row.excess)
    if frame is not None and frame.excess < MOST * frame.time:
        frame = None  # such as the loop over the steps, in which every rank spends its time
    where: Literal["host", "frame", "device"] = "device" if on_device else "host"
    kind: CauseKind = "more_work" if on_device else "host"
    operator = None
    if not on_device and named is not None and is_data_loading(named.name):
        kind = "data_loading"
    elif frame is not None:
        most = _largest(row.host, MOST * row.excess)
        named, where, operator = frame, "frame", None if most is None else most.name
    if named is not None:
        median = None if named.median is None else named.median / steps
        short_name = row.short_names.get(named.name) if where == "device" else None
        return Cause(
            kind,
            row.member,
            where,
            named.name,
            named.time / steps,
            median,
            row.latest,
            operator=operator,
            short_name=short_name,
        )
    category = max(row.categories, key=lambda each: each.excess)
    time, usual = category.time / steps, (category.median or 0) / steps
    return Cause(
        _OF_CATEGORY.get(category.name, "other"), row.member, "category", category.name, time, usual, row.latest
    )


def _largest(times: Sequence[RankTime], least: float) -> RankTime | None:
    """The one that the rank spends most more in, if that is so much."""
    return times[0] if times and times[0].excess >= least else None
