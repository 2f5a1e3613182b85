"""What the ranks that wait for a late one spend on communication."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.comparison import RankComparison
from torch_tb_profiler.analyses.distributed.late_once import typical_job_steps
from torch_tb_profiler.analyses.distributed.matching import ranks_without_times
from torch_tb_profiler.analyses.distributed.steps import step_columns
from torch_tb_profiler.analyses.distributed.stragglers import Straggler
from torch_tb_profiler.analyses.distributed.totals import WorkerTotal


class CommunicationShare(msgspec.Struct, frozen=True):
    """What some ranks spend on communication.

    share   share of a typical step, both means over the ranks; of any if they communicate in odd steps only
    exposed True if only communication not overlapped with computation counts; False without a GPU, as the host's
            computation goes on while other threads communicate: then all communication counts
    largest the collective with the most time, None without any; only: there is no other; majority: it has more
            than half of the time
    """

    members: list[int]
    share: float
    exposed: bool
    largest: str | None
    only: bool
    majority: bool


def communication_share(
    comparison: RankComparison, totals: Sequence[WorkerTotal], without: Sequence[Straggler]
) -> CommunicationShare | None:
    """Return the communication of all ranks except `without`, None if no other rank has a step that counts.

    Where gradients are reduced in every fourth step only, those that wait for a late rank are odd, and no time of
    the typical ones is communication: then the steps that count for the job's costs count here as well.
    Ranks whose files record no times of communication are left out, since that doesn't mean there is none.
    """
    excluded = {*(row.member for row in without), *ranks_without_times(comparison.job)}
    members = [member for member in range(len(comparison.sources)) if member not in excluded]
    exposed = all(comparison.sources[member].summary.by_kernels for member in members)
    steps = step_columns(comparison)
    communication = steps.exposed + steps.overlap
    waits_in_odd_steps = not communication[steps.typical & np.isin(steps.member, members)].any()
    counted = (
        steps.complete & typical_job_steps(comparison.job)[steps.step] if waits_in_odd_steps else steps.typical
    )
    known = counted & (steps.duration > 0)
    counts = np.bincount(steps.member[known], minlength=len(comparison.sources))
    # Not the mean of the steps' shares, in which a short step would count as much as a long one.
    spent = np.bincount(
        steps.member[known], (steps.exposed + (0 if exposed else steps.overlap))[known], len(counts)
    )
    duration = np.bincount(steps.member[known], steps.duration[known], len(counts))
    with_steps = [member for member in members if counts[member]]
    if not with_steps:
        return None
    times: dict[str, int] = {}
    for total in totals:
        time = total.exposed if exposed else total.latency
        if time is not None and comparison.job.table.member[total.operation] not in excluded:
            name = comparison.job.name_of(total.operation)
            times[name] = times.get(name, 0) + time
    largest = max(times, key=lambda name: times[name], default=None)
    # Of a mean step, as the tables and the summary have it: a rank with short steps counts for less.
    per_step = [float((column / np.maximum(counts, 1))[with_steps].sum()) for column in (spent, duration)]
    majority = largest is not None and 2 * times[largest] > sum(times.values())
    return CommunicationShare(members, per_step[0] / per_step[1], exposed, largest, len(times) == 1, majority)
