"""The verdict on a job: whether a few ranks keep the others waiting, what that costs, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.causes import (
    SlowerDevices,
    StragglerCause,
    find_cause,
    find_slower_devices,
    name_late_once,
)
from torch_tb_profiler.analyses.distributed.communication_share import CommunicationShare, communication_share
from torch_tb_profiler.analyses.distributed.comparison import RankComparison
from torch_tb_profiler.analyses.distributed.costs import StragglerCosts, Suspect
from torch_tb_profiler.analyses.distributed.groups import RankCoverage
from torch_tb_profiler.analyses.distributed.late_in_turn import LateInTurn, find_late_in_turn
from torch_tb_profiler.analyses.distributed.late_once import (
    LateOnce,
    are_typical,
    find_late_once,
)
from torch_tb_profiler.analyses.distributed.steps import UnderusedRank, find_underused_rank
from torch_tb_profiler.analyses.distributed.stragglers import Straggler, StragglerActivity
from torch_tb_profiler.analyses.distributed.suspects import (
    causes_most_at_times,
    find_possible,
    find_suspects,
    is_hidden,
    limit_cost,
    mean_step_duration,
    min_notable_cost,
    passes_messages,
    uncompared_times,
)
from torch_tb_profiler.analyses.distributed.totals import WorkerTotal
from torch_tb_profiler.analyses.distributed.uneven_work import UnevenWork, find_uneven_work
from torch_tb_profiler.model.trace import Float64

UNCERTAIN_COST_SHARE = 0.1
"""Ranks that may cost at least this share of a step are named as possible stragglers, rather than call the job
balanced."""

MIN_LEADING_SHARE = 0.5
"""Ranks that aren't stragglers are named beside what all differences cost if they cause more than this share."""

MIN_PRESENT_SHARE = 0.5
"""With less than this share of the job's ranks, no rank is named as the straggler of the job."""

MAX_EXPLAINED_EVENTS = 4
"""Most ranks that are late once of which it is said when, by how much, and in what."""

MAX_UNKNOWN_GROUP_SHARE = 0.5
"""With more than this share of operations in unknown groups, it is unknown who communicates with whom."""


class StragglerVerdict(msgspec.Struct, frozen=True):
    """Which ranks keep the others waiting.

    kind     straggler: `ranks` keep the others waiting, most cost first; uncertain: `possible` may, which would
             matter more than what others cost at times; balanced: no rank stands out; uneven: none is a straggler,
             but they differ in their work, one is late at times, or one computes less; unknown
    reason   why it is unknown: no rank, a single one, no collective matched, the late rank is absent, too few of
             the job's ranks are present, it is not recorded who communicates with whom, or ranks that are missing
             may be late
    suspect  who costs how much, together; `members` is empty for absent ranks
    costliest  the rank with the most cost, None if none has any; the most that it may cost if `kind` is unknown as
               ranks are missing
    in_turn    if uneven: that another rank is late in each step; `imbalance` is what this costs
    uneven     the rank whose work differs most from the others' by the sizes of its kernels: then `imbalance` is
               what an even split would save, unknown with ranks missing; None if the sizes don't explain it
    slower_devices  if neither explains `imbalance`: the ranks, too many to be stragglers, whose devices are
               slower; also without `imbalance` where ranks pass messages on, whose cost the replay can't tell,
               where the verdict is unknown, and where more than `ranks` have slower devices, which explain them
    possible   the ranks that work longer in most steps, if that varies so much that it may be chance
    imbalance  if uneven: ns per step that the differences between all ranks cost, with no few ranks causing most
             of it, or with `possible` ones that may do so by chance, or with `once` if that isn't most of it; None
             if that is not worth naming
    leading    the rank, or a few ranks, that cost the others more than half of `imbalance`, None if none does
    communication  of the other ranks, None if unknown
    causes   why those of `ranks` are late of which it is known, in their order
    cost_is_limit  `suspect` costs at most that: ranks are missing, its links are slow and some of its collectives
                  have none to compare them with, or it passes messages on, whose cost the replay can't tell from
                  the waiting that a pipeline has in any case; it is no more than the others wait, nor than the
                  suspect works longer than is typical
    even_split  if each of `ranks` is late as its kernels are larger, and all ranks are compared: ns per step that
                the same work, spread evenly, would save, since it has to be done by some rank; else None
    missing_cost  ns per step that ranks that aren't compared cost at most; None if that is not worth naming, or
                  all are compared
    once     the ranks whose lateness in few steps stands out, latest first, without those of `ranks`
    underused  if nothing else is uneven: the rank that computes notably less than the others
    """

    kind: Literal["straggler", "uncertain", "balanced", "uneven", "unknown"]
    reason: Literal["empty", "alone", "unmatched", "absent", "few", "groups", "missing"] | None = None
    suspect: Suspect | None = None
    ranks: tuple[Straggler, ...] = ()
    costliest: Straggler | None = None
    possible: Suspect | None = None
    imbalance: float | None = None
    leading: Suspect | None = None
    communication: CommunicationShare | None = None
    causes: tuple[StragglerCause, ...] = ()
    even_split: float | None = None
    missing_cost: float | None = None
    once: tuple[LateOnce, ...] = ()
    cost_is_limit: bool = False
    in_turn: LateInTurn | None = None
    uneven: UnevenWork | None = None
    slower_devices: SlowerDevices | None = None
    underused: UnderusedRank | None = None

    @property
    def cause(self) -> StragglerCause | None:
        """Return why the first of `ranks` is late, None if unknown."""
        return self.cause_of(self.ranks[0].member) if self.ranks else None

    def cause_of(self, member: int) -> StragglerCause | None:
        """Return why one of `ranks` is late, None if unknown."""
        return next((cause for cause in self.causes if cause.member == member), None)

    @property
    def splits_waiting(self) -> bool:
        """Return whether waiting and transfer can be told apart, or bounded where ranks are missing."""
        return self.kind != "unknown" or self.reason in ("absent", "missing")


def judge_ranks(
    comparison: RankComparison,
    costs: StragglerCosts,
    rows: Sequence[Straggler],
    totals: Sequence[WorkerTotal],
    activities: Sequence[StragglerActivity],
    coverage: RankCoverage,
) -> StragglerVerdict:
    """Decide which ranks keep the others waiting; `rows` are all ranks, most cost first."""
    if not comparison.sources:
        return StragglerVerdict("unknown", "empty")
    if len(comparison.sources) == 1:
        return StragglerVerdict("unknown", "alone")
    if not comparison.matching.compared.any():
        return StragglerVerdict("unknown", "unmatched")
    suspects = find_suspects(comparison, costs)
    costliest = rows[0] if rows and rows[0].cost > 0 else None
    min_cost = min_notable_cost(comparison)
    uncompared = uncompared_times(comparison)
    absent_limit = costs.absent_limit + float(uncompared.max(initial=0.0))
    hidden = not coverage.complete and absent_limit >= min_cost
    missing_cost = absent_limit if hidden else None
    suspect = next((each for each in suspects if not (hidden and is_hidden(each, min_cost))), None)
    limited = costliest if coverage.complete else _limit_costliest(comparison, costs, rows, uncompared)
    if suspect is not None and suspect.reason == "absent":
        return StragglerVerdict(
            "unknown",
            "absent",
            suspect,
            costliest=limited,
            missing_cost=missing_cost,
            slower_devices=find_slower_devices(comparison.job),
        )
    if coverage.compared < MIN_PRESENT_SHARE * coverage.expected:
        slower = find_slower_devices(comparison.job)
        return StragglerVerdict("unknown", "few", suspect, costliest=limited, slower_devices=slower)
    if suspect is None and _are_groups_unknown(comparison):
        return StragglerVerdict("unknown", "groups", costliest=costliest)
    limited_by_messages = (
        suspect is not None and suspect.reason == "work" and passes_messages(comparison, suspect.members)
    )
    if suspect is not None and (limited_by_messages or missing_cost is not None):
        suspect = limit_cost(comparison, costs, rows, suspect, uncompared if hidden else np.zeros_like(uncompared))
    has_limit = suspect is not None and suspect.limit is not None
    if suspect is not None and suspect.limit is not None:
        suspect = msgspec.structs.replace(suspect, cost=suspect.limit)
    named = tuple(row for row in rows if suspect is not None and row.member in suspect.members)
    found = _find_differences(comparison, costs, activities, suspect, min_cost)
    # Without what a suspect works longer, it may only wait longer for a missing rank, as the others do then.
    unclear = bool(suspects) or absent_limit >= (found.imbalance or 0.0)
    if not (suspect or found.uncertain) and hidden and unclear:
        return StragglerVerdict(
            "unknown",
            "missing",
            costliest=limited if costliest is not None and costliest.cost >= min_cost else None,
            missing_cost=missing_cost,
            slower_devices=find_slower_devices(comparison.job),
        )
    explained = [name_late_once(comparison, costs.all_work, each) for each in found.once[:MAX_EXPLAINED_EVENTS]]
    once = (*explained, *found.once[MAX_EXPLAINED_EVENTS:])
    causes = _find_causes(comparison, suspect, named, activities) if suspect else ()
    slower_devices = _find_explaining_devices(comparison, found, causes, named)
    differs = bool(once) or slower_devices is not None
    differs = differs or any(each is not None for each in (found.in_turn, found.uneven, found.imbalance))
    underused = None if suspect or found.uncertain or differs else find_underused_rank(comparison)
    differs = differs or underused is not None
    imbalance = found.imbalance
    if not (suspect or found.uncertain) and _are_late_in_typical_steps(comparison, once):
        imbalance = _compute_remaining_imbalance(costs, costliest, once, min_cost)
    leading = None if imbalance is None else _find_leading(costs, imbalance)
    can_split = coverage.complete and not limited_by_messages and len(causes) == len(named)
    can_split = can_split and all(cause.divisible for cause in causes)
    # A missing rank may be as late: then the others wait as long without the one that is named.
    cost_is_limit = suspect is not None and (limited_by_messages or has_limit or not coverage.complete)
    if suspect is not None and cost_is_limit and len(named) == 1:
        named = (msgspec.structs.replace(named[0], cost=suspect.cost, cost_is_limit=True),)
    return StragglerVerdict(
        kind="straggler" if suspect else "uncertain" if found.uncertain else "uneven" if differs else "balanced",
        suspect=suspect,
        ranks=named,
        costliest=costliest,
        possible=found.possible,
        # The work of missing ranks is unknown, and so is what each rank has if all have as much of it.
        imbalance=None if found.uneven is not None and not coverage.complete else imbalance,
        leading=leading,
        in_turn=found.in_turn,
        uneven=found.uneven,
        slower_devices=slower_devices,
        communication=communication_share(comparison, totals, named),
        causes=causes,
        even_split=min(costs.even_split, suspect.cost) if suspect and can_split else None,
        missing_cost=missing_cost,
        once=once,
        underused=underused,
        cost_is_limit=cost_is_limit,
    )


def _limit_costliest(
    comparison: RankComparison, costs: StragglerCosts, rows: Sequence[Straggler], hidden_waiting: Float64
) -> Straggler | None:
    """Return the costliest rank with the most that it may cost beside missing ones; None if none costs any."""
    if not rows or rows[0].cost <= 0:
        return None
    suspect = limit_cost(comparison, costs, rows, Suspect((rows[0].member,), rows[0].cost), hidden_waiting)
    return msgspec.structs.replace(rows[0], cost=suspect.cost, cost_is_limit=True)


class _Differences(NamedTuple):
    """How the ranks differ beside a suspect, or without one; its fields are those of `StragglerVerdict`.

    uncertain  `possible` would matter
    balanced   no few ranks are late, or may be
    """

    once: tuple[LateOnce, ...]
    possible: Suspect | None
    uncertain: bool
    balanced: bool
    in_turn: LateInTurn | None
    uneven: UnevenWork | None
    imbalance: float | None


def _find_differences(
    comparison: RankComparison,
    costs: StragglerCosts,
    activities: Sequence[StragglerActivity],
    suspect: Suspect | None,
    min_cost: float,
) -> _Differences:
    """Find who is late once, in turn, or perhaps by chance, and what the differences between all ranks cost."""
    step_ns = mean_step_duration(comparison)
    once = find_late_once(comparison.job, costs.all_work, step_ns, suspect.members if suspect else ())
    possible = None if suspect else find_possible(comparison, costs, min_cost)
    in_turn = None
    if suspect is None and costs.imbalance >= min_cost:
        in_turn = find_late_in_turn(comparison.job, costs.all_work, step_ns, activities)
    if in_turn is not None:
        # One of two ranks that take turns is late in half of the steps, so it may be the costliest by chance.
        once, possible = (), None
    uncertain = (
        possible is not None
        and possible.cost >= UNCERTAIN_COST_SHARE * step_ns
        and causes_most_at_times(costs, possible)
    )
    balanced = suspect is None and possible is None
    uneven, imbalance = None, None
    if in_turn is not None:
        imbalance = costs.imbalance
    elif balanced and not once:
        uneven = find_uneven_work(comparison.job) if costs.even_split >= min_cost else None
        # What one rank does on its host can't be given to another, so only work of the devices is split.
        imbalance = costs.imbalance if uneven is None else costs.even_split
        imbalance = imbalance if imbalance >= min_cost else None
    elif not (suspect or uncertain or once) and costs.at_times >= min_cost:
        # What it costs that others are late where this one isn't is no chance, even if it may be that this one is.
        imbalance = costs.imbalance
    return _Differences(once, possible, uncertain, balanced, in_turn, uneven, imbalance)


def _are_late_in_typical_steps(comparison: RankComparison, once: Sequence[LateOnce]) -> bool:
    """Return whether ranks are late once, and all of them in steps that are typical of the job."""
    return bool(once) and all(are_typical(comparison.job, each.steps) for each in once)


def _compute_remaining_imbalance(
    costs: StragglerCosts, costliest: Straggler | None, once: Sequence[LateOnce], min_cost: float
) -> float | None:
    """Return what all differences cost, or None if ranks that are late once cost nearly all of it."""
    is_late = costliest is not None and any(each.member == costliest.member for each in once)
    alone = costliest.cost if costliest is not None and is_late else 0.0
    return costs.imbalance if costs.imbalance - alone >= min_cost else None


def _find_leading(costs: StragglerCosts, imbalance: float) -> Suspect | None:
    """Return the fewest ranks, at most a quarter of all or a single one, that cause most of an imbalance."""
    first, ranks = int(costs.by_rank.argmax()), len(costs.by_rank)
    few = sorted(
        (each for each in costs.sets if 4 * len(each.members) <= ranks), key=lambda each: len(each.members)
    )
    candidates = (Suspect((first,), float(costs.by_rank[first])), *few)
    return next((each for each in candidates if each.cost > MIN_LEADING_SHARE * imbalance), None)


def _find_explaining_devices(
    comparison: RankComparison,
    found: _Differences,
    causes: Sequence[StragglerCause],
    named: Sequence[Straggler],
) -> SlowerDevices | None:
    """Return the ranks whose slower devices explain an imbalance, or that hide behind the `named` ones."""
    in_other_ways = found.in_turn is not None or found.uneven is not None
    if not in_other_ways and (found.imbalance is not None or found.balanced and passes_messages(comparison)):
        return find_slower_devices(comparison.job)
    if any(cause.kind == "slower_device" for cause in causes):
        return _find_more_slower_devices(comparison, named)
    return None


def _find_causes(
    comparison: RankComparison,
    suspect: Suspect,
    named: Sequence[Straggler],
    activities: Sequence[StragglerActivity],
) -> tuple[StragglerCause, ...]:
    found = (find_cause(comparison, suspect, row.member, activities) for row in named)
    return tuple(cause for cause in found if cause is not None)


def _find_more_slower_devices(comparison: RankComparison, named: Sequence[Straggler]) -> SlowerDevices | None:
    """Return the ranks with slower devices if these are the named ones and others, which may hide behind them."""
    slower = find_slower_devices(comparison.job)
    known = {row.member for row in named}
    return slower if slower is not None and known < {*slower.members} else None


def _are_groups_unknown(comparison: RankComparison) -> bool:
    """Return whether most compared operations are in groups of over two ranks, without recorded ranks or size."""
    table, compared = comparison.job.table, comparison.split.compared
    unknown = [
        group.ranks is None and group.size is None and len(members) > 2
        for group, members in zip(comparison.job.groups, comparison.job.members, strict=True)
    ]
    return bool(np.array([*unknown, False])[table.group[compared]].mean() > MAX_UNKNOWN_GROUP_SHARE)
