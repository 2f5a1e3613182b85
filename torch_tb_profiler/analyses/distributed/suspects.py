"""Which ranks are suspected of keeping the others waiting, and what they cost at most where that isn't known."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.comparison import RankComparison
from torch_tb_profiler.analyses.distributed.costs import StragglerCosts, Suspect
from torch_tb_profiler.analyses.distributed.late_once import is_late_in_most_steps
from torch_tb_profiler.analyses.distributed.matching import has_own_time
from torch_tb_profiler.analyses.distributed.significance import is_significant
from torch_tb_profiler.analyses.distributed.steps import step_columns
from torch_tb_profiler.analyses.distributed.stragglers import Straggler
from torch_tb_profiler.model.communication.events import POINT_TO_POINT
from torch_tb_profiler.model.trace import Float64

MIN_COST_SHARE = 0.02
"""A cost below this share of a step is not worth naming."""

MAJORITY_COST_SHARE = 0.7
"""Stragglers are the fewest ranks that cost the others at least this share of what all differences cost these."""


def find_suspects(comparison: RankComparison, costs: StragglerCosts) -> list[Suspect]:
    """Return the few ranks that cause most of the loss, if it is worth naming and significant; costliest first.

    They may be late in work, in transfers, and without a trace: there is one suspect of each reason at most.
    """
    min_cost = min_notable_cost(comparison)
    links = [
        link
        for link in costs.slow_links
        if link.cost >= min_cost and 2 * len(link.members) <= len(comparison.sources)
    ]
    work = longest_working(costs, min_cost)
    if work is not None and (
        not causes_most_at_times(costs, work)
        or not recurs(comparison, costs, work)
        or not is_significant(comparison.job, costs.work, work.members)
    ):
        work = None
    suspects = [
        *([work] if work is not None else []),
        *links,
        *([costs.absent] if costs.absent.cost >= min_cost else []),
    ]
    return sorted(suspects, key=lambda suspect: -suspect.cost)


def is_hidden(suspect: Suspect, min_cost: float) -> bool:
    """Return whether ranks late in their work may cost nothing, as a missing rank that they wait for is later."""
    return suspect.certain is not None and suspect.certain < min_cost


def find_possible(comparison: RankComparison, costs: StragglerCosts, min_cost: float) -> Suspect | None:
    """Return the ranks that work longer in most steps, if that may be chance."""
    work = longest_working(costs, min_cost)
    if work is None or not recurs(comparison, costs, work):
        return None
    return None if is_significant(comparison.job, costs.work, work.members) else work


def longest_working(costs: StragglerCosts, min_cost: float) -> Suspect | None:
    """Return the fewest ranks that cause most of what the differences between the ranks cost the others.

    What a late rank costs itself isn't part of that: where the others wait for a missing rank, which it may hold
    up, it would be done far earlier than they."""
    first = int(costs.by_rank.argmax())
    single = Suspect((first,), float(costs.by_rank[first]), certain=float(costs.certain_by_rank[first]))
    hosts = sorted((suspect for suspect in costs.sets if suspect.host), key=lambda suspect: -suspect.cost)
    candidates = (single, *hosts, *(suspect for suspect in costs.sets if not suspect.host))

    def causes_most(suspect: Suspect) -> bool:
        return suspect.cost >= MAJORITY_COST_SHARE * costs.imbalance_of_others(suspect.members)

    return next((each for each in candidates if each.cost >= min_cost and causes_most(each)), None)


def causes_most_at_times(costs: StragglerCosts, suspect: Suspect) -> bool:
    """Return whether a suspect causes most of what lateness in some steps costs the others.

    What most ranks do at once in some steps is typical there, but a rank that waits for them then, and is late in
    the other steps, doesn't cause most of the loss.
    """
    return suspect.cost >= MAJORITY_COST_SHARE * costs.at_times_of_others(suspect.members)


def recurs(comparison: RankComparison, costs: StragglerCosts, suspect: Suspect) -> bool:
    """Return whether what a suspect works longer recurs in most of the typical steps."""
    return is_late_in_most_steps(comparison.job, costs.work, suspect.members)


def limit_cost(
    comparison: RankComparison,
    costs: StragglerCosts,
    rows: Sequence[Straggler],
    suspect: Suspect,
    hidden_waiting: Float64,
) -> Suspect:
    """Return the suspect with the most that it may cost, where the replay can't tell its cost from other waiting.

    hidden_waiting  float64[ranks] ns per step with ranks that aren't compared; what a rank does with one of them
                    may take long as that one waits for the suspect
    """
    waiting = [
        row.waiting_per_step + float(hidden_waiting[row.member])
        for row in rows
        if row.member not in suspect.members
    ]
    # Messages that are awaited side by side are as much waiting together, and no step saves more than itself.
    longest = min(max(waiting, default=0.0), mean_step_duration(comparison) or np.inf)
    if suspect.reason == "work":
        # A step isn't shorter by more than the work that is gone, on whatever path it is.
        longest = min(longest, float(costs.longer[list(suspect.members)].sum()))
    return msgspec.structs.replace(suspect, cost=max(suspect.cost, longest))


def uncompared_times(comparison: RankComparison) -> Float64:
    """Return float64[ranks]: ns per step that each waits at most in operations that no other compared rank has.

    A device may wait while another one of its process computes, so that the time isn't exposed.
    """
    table, rows = comparison.job.table, np.flatnonzero(~comparison.split.compared & has_own_time(comparison.job))
    counts = [max(len(source.summary.steps), 1) for source in comparison.sources]
    waiting = np.maximum(table.exposed[rows], np.minimum(table.stall[rows], table.latency[rows]))
    times: Float64 = np.bincount(table.member[rows], np.maximum(waiting, 0), len(counts)) / np.array(counts)
    return times


def passes_messages(comparison: RankComparison, members: Sequence[int] | None = None) -> bool:
    """Return whether most compared operations of these ranks, or of all, are messages."""
    rows = comparison.split.compared
    if members is not None:
        rows = rows & np.isin(comparison.job.table.member, members)
    return bool(comparison.job.is_named(*POINT_TO_POINT)[rows].mean() > 0.5)


def min_notable_cost(comparison: RankComparison) -> float:
    """Return the smallest cost worth naming, in ns per step."""
    return max(MIN_COST_SHARE * mean_step_duration(comparison), 1.0)


def mean_step_duration(comparison: RankComparison) -> float:
    """Return the mean over the typical steps of all ranks in ns, 0 without steps."""
    columns = step_columns(comparison)
    durations = columns.duration[columns.typical] if columns.typical.any() else columns.duration
    return float(np.mean(durations)) if len(durations) else 0.0
