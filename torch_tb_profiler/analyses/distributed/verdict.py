"""Whether a few ranks keep the others waiting, what that costs, and what these ranks do meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.causes import Cause, cause_of
from torch_tb_profiler.analyses.distributed.comparison import Comparison
from torch_tb_profiler.analyses.distributed.costs.costs import Costs, Suspect
from torch_tb_profiler.analyses.distributed.costs.evidence import stands_out
from torch_tb_profiler.analyses.distributed.groups import expected_ranks
from torch_tb_profiler.analyses.distributed.matching.matching import untimed
from torch_tb_profiler.analyses.distributed.meanwhile import Meanwhile
from torch_tb_profiler.analyses.distributed.steps import step_columns
from torch_tb_profiler.analyses.distributed.stragglers import Straggler
from torch_tb_profiler.analyses.distributed.totals import WorkerTotal

WORTH_NAMING = 0.02
"""A cost below this share of a step is not worth naming."""

DOUBTFUL = 0.1
"""Who may cost this share of a step is named as a doubt: that no rank stands out would be a claim."""

MOST_COST = 0.7
"""The ranks that cost this share of what all differences between the ranks cost are the stragglers."""

HERE = 0.5
"""With less than this share of the job's ranks, no rank is named for the whole of it."""


class Communication(msgspec.Struct, frozen=True):
    """What some ranks spend on communication.

    share   of a complete step, mean over the ranks
    exposed True: only while nothing computes. Without a GPU the computation is the host's, which goes on while
            other threads communicate: then all communication counts
    largest the collective with the most time, None without any; only: there is no other
    """

    members: list[int]
    share: float
    exposed: bool
    largest: str | None
    only: bool


class Verdict(msgspec.Struct, frozen=True):
    """kind     straggler: `ranks` keep the others waiting, most cost first; uncertain: `weak` may, which would
             matter; balanced: no rank stands out; unknown
    reason   why it is unknown: no rank, one alone, no collective matched, the late rank is not here, too few
             of the job's ranks are, or it is not recorded who communicates with whom
    suspect  who costs how much, together; of ranks that are not here `members` is empty
    most     the rank with the most cost, None if none has any
    weak     who would be named, did their lateness not vary so much that it may be chance
    spread   balanced: ns per step that differences between the ranks cost of which no few ranks cause most; None
             where that is not worth naming
    communication  of the other ranks, cause: why the first of `ranks` is late; None if unknown
    """

    kind: Literal["straggler", "uncertain", "balanced", "unknown"]
    reason: Literal["empty", "alone", "unmatched", "absent", "few", "groups"] | None = None
    suspect: Suspect | None = None
    ranks: tuple[Straggler, ...] = ()
    most: Straggler | None = None
    weak: Suspect | None = None
    spread: float | None = None
    communication: Communication | None = None
    cause: Cause | None = None


def judge(
    comparison: Comparison,
    costs: Costs,
    rows: Sequence[Straggler],
    totals: Sequence[WorkerTotal],
    before: Sequence[Meanwhile],
) -> Verdict:
    """`rows`: every rank, most cost first; `before`: what they did meanwhile."""
    if not comparison.sources:
        return Verdict("unknown", "empty")
    if len(comparison.sources) == 1:
        return Verdict("unknown", "alone")
    if not comparison.matching.compared.any():
        return Verdict("unknown", "unmatched")
    suspect = suspected(comparison, costs)
    most = rows[0] if rows and rows[0].cost > 0 else None
    if suspect is not None and suspect.why == "absent":
        return Verdict("unknown", "absent", suspect, most=most)
    if len(comparison.sources) < HERE * len(expected_ranks(comparison)):
        return Verdict("unknown", "few", suspect, most=most)
    if suspect is None and _groups_unknown(comparison):
        return Verdict("unknown", "groups", most=most)
    named = tuple(row for row in rows if suspect is not None and row.member in suspect.members)
    least = least_cost(comparison)
    weak = None if suspect else _working_longest(costs, least)
    doubtful = weak is not None and weak.cost >= DOUBTFUL * mean_step(comparison)
    return Verdict(
        kind="straggler" if suspect else "uncertain" if doubtful else "balanced",
        suspect=suspect,
        ranks=named,
        most=most,
        weak=weak,
        spread=costs.balanced if suspect is None and weak is None and costs.balanced >= least else None,
        communication=_communication(comparison, totals, named),
        cause=cause_of(comparison, suspect, named[0].member, before) if suspect else None,
    )


def suspected(comparison: Comparison, costs: Costs) -> Suspect | None:
    """The few ranks that cause most of what is lost, if it is worth naming and more than chance."""
    least = least_cost(comparison)
    links = [
        each for each in costs.links if each.cost >= least and 2 * len(each.members) <= len(comparison.sources)
    ]
    work = _working_longest(costs, least)
    clear = work is not None and stands_out(comparison.job, costs.work, work.members)
    suspects = [
        *([work] if work and clear else []),
        *links,
        *([costs.absent] if costs.absent.cost >= least else []),
    ]
    return max(suspects, key=lambda suspect: suspect.cost, default=None)


def least_cost(comparison: Comparison) -> float:
    """ns per step that are worth naming."""
    return max(WORTH_NAMING * mean_step(comparison), 1.0)


def mean_step(comparison: Comparison) -> float:
    """ns; 0 without any."""
    durations = step_columns(comparison).duration
    return float(np.mean(durations)) if len(durations) else 0.0


def _groups_unknown(comparison: Comparison) -> bool:
    """Most operations are of groups of which nothing is known, and that are more than one."""
    table, compared = comparison.job.table, comparison.split.compared
    unknown = [
        each.ranks is None and each.size is None and len(members) > 2
        for each, members in zip(comparison.job.groups, comparison.job.members, strict=True)
    ]
    return bool(np.array([*unknown, False])[table.group[compared]].mean() > HERE)


def _working_longest(costs: Costs, least: float) -> Suspect | None:
    """The fewest ranks that cause most of what the differences between the ranks cost."""
    first = int(costs.alone.argmax())
    alone = Suspect((first,), float(costs.alone[first]))
    hosts = sorted((each for each in costs.together if each.host), key=lambda each: -each.cost)
    sets = (alone, *hosts, *(each for each in costs.together if not each.host))
    return next((each for each in sets if each.cost >= max(MOST_COST * costs.balanced, least)), None)


def _communication(
    comparison: Comparison, totals: Sequence[WorkerTotal], without: Sequence[Straggler]
) -> Communication | None:
    """Of all ranks but those of `without` and those whose files have no time of it, which is not none; None if no
    other has a complete step."""
    excluded = {*(row.member for row in without), *untimed(comparison.job)}
    members = [member for member in range(len(comparison.sources)) if member not in excluded]
    summaries = [comparison.sources[member].summary for member in members]
    exposed = all(summary.by_kernels for summary in summaries)
    steps = step_columns(comparison)
    known = steps.complete & (steps.duration > 0)
    counts = np.bincount(steps.member[known], minlength=len(comparison.sources))
    share = (steps.exposed + (0 if exposed else steps.overlap))[known] / steps.duration[known]
    sums = np.bincount(steps.member[known], share, len(counts))
    counted = [member for member in members if counts[member]]
    if not counted:
        return None
    shares = sums[counted] / counts[counted]
    times: dict[str, int] = {}
    for total in totals:
        time = total.exposed if exposed else total.latency
        if time is not None and comparison.job.table.member[total.operation] not in excluded:
            name = comparison.job.name_of(total.operation)
            times[name] = times.get(name, 0) + time
    largest = max(times, key=lambda name: times[name], default=None)
    return Communication(members, float(np.mean(shares)), exposed, largest, len(times) == 1)
