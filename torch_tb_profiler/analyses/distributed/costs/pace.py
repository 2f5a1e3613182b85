"""How long a rank takes for the kernels that the others run, too."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.job import Job
from torch_tb_profiler.base.median import median

_NOTABLE = 1.02
"""A device is not called slower for less."""

_ALL = 0.8
"""It is slower if kernels that make up this share of its time are."""


class Pace(msgspec.Struct, frozen=True):
    """`ratio`: time of the rank's kernels over that of the same calls on the median rank; `names`: how many
    kernels were compared; `uniform`: nearly all of them take longer, so that it is the device and not the work."""

    ratio: float
    names: int
    uniform: bool


def pace(job: Job, member: int) -> Pace | None:
    """None if no kernel of the rank runs on another one."""
    means: dict[str, list[float]] = {}
    for position, source in enumerate(job.sources):
        for total in source.summary.kernels:
            if position != member and total.calls:
                means.setdefault(source.summary.names[total.name], []).append(total.time / total.calls)
    summary = job.sources[member].summary
    pairs = [
        (total.time, total.calls * median(means[summary.names[total.name]]))
        for total in summary.kernels
        if summary.names[total.name] in means
    ]
    own, usual = np.array(pairs, np.float64).reshape(-1, 2).T
    if usual.sum() == 0:
        return None
    ratio = float(own.sum() / usual.sum())
    slower = own[own >= usual * (1 + (ratio - 1) / 2)].sum() >= _ALL * own.sum()
    return Pace(ratio, len(pairs), bool(ratio >= _NOTABLE and len(pairs) > 1 and slower))
