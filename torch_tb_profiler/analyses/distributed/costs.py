"""What each rank's lateness costs the job: the difference to the same job in which the rank works a typical time.

A rank that is late because it waits for another works no longer than is typical, and costs nothing. Two ranks that
are late at once cost nothing each, as the other is still late: so ranks are also replayed together, and the ranks
of a host.

A collective may also take longer than it needs to although all its present ranks have arrived. Either a link of
its ranks is slower: other ranks transfer as much in less time. Or ranks whose traces are missing arrive late: then
all the present ranks wait, and the shortest of their times is not the transfer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.hidden_lateness import without_hidden_lateness
from torch_tb_profiler.analyses.distributed.job import DistributedJob
from torch_tb_profiler.analyses.distributed.late_at_times import without_lateness_at_times
from torch_tb_profiler.analyses.distributed.late_once import (
    MIN_STEPS,
    count_typical_steps,
    is_in_most_steps,
    judged_steps,
    typical_job_steps,
    without_odd_steps,
)
from torch_tb_profiler.analyses.distributed.matching import Matching
from torch_tb_profiler.analyses.distributed.medians import group_medians, medians_without_each
from torch_tb_profiler.analyses.distributed.operations import select
from torch_tb_profiler.analyses.distributed.replay import JobReplay, ReplayResult, ReplayScenarios
from torch_tb_profiler.analyses.distributed.uneven_work import even_split
from torch_tb_profiler.analyses.distributed.waiting import WaitingSplit, fastest_transfers
from torch_tb_profiler.analyses.distributed.work_windows import WorkWindows, work_windows
from torch_tb_profiler.analyses.shared.grouping import dense_codes, group, positions_by_value
from torch_tb_profiler.base.arrays import highest_by_number, median, sums_by_number
from torch_tb_profiler.base.threads import start_in_thread
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Float64, Int32, Int64

MAX_REPLAYED_RANKS = 24
"""Number of ranks, those that work longest beyond the typical time, whose cost is computed; the others cost 0."""

MAX_SET_SIZE = 8
"""Most ranks that are replayed together; at most a quarter of all ranks are."""

MIN_HOST_EXCESS_RATIO, MIN_LATE_HOST_SHARE = 0.5, 0.75
"""The ranks of a host are late together if at least this share of them works longer than is typical, each by more
than this ratio of the host's largest excess."""

_MIN_HELD_UP_SHARE = 0.5
"""A rank is held up by another if, without it, it would arrive earlier by at least this share of its lateness."""

MIN_ABSENT_WAIT_RATIO = 2.0
"""A collective with a missing rank waits for it if it takes at least this many times as long as the fastest one
that moves as much; less is what transfers vary by."""

_SHARED_LINK_COST_RATIO = 0.95
"""Ranks with slow links share the blame if their costs are at least this ratio of the largest."""


class Suspect(msgspec.Struct, frozen=True):
    """Ranks that were replayed together, and the ns per step that they cost the others.

    reason  work: they work longer than is typical; transfer: their links are slow; absent: ranks whose traces are
            missing arrive late
    host    the host if all of its ranks were replayed
    limit   of slow links: what they cost at most, where some of their collectives have none to compare them with
    certain  of work: what they cost even if ranks whose traces are missing arrive when they do now; else `cost`
    """

    members: tuple[int, ...]
    cost: float
    reason: Literal["work", "transfer", "absent"] = "work"
    host: str | None = None
    limit: float | None = None
    certain: float | None = None


class StragglerCosts(msgspec.Struct, frozen=True):
    """What lateness costs.

    by_rank     float64[ranks]  ns per step that each rank costs the others
    certain_by_rank  float64[ranks]  likewise, even if ranks whose traces are missing arrive when they do now
    longer      float64[ranks]  ns per step that each rank works longer than is typical, where it does: without it
                no path through the job is shorter by more, whatever waits for what
    sets        sets of ranks: those of each host, and those that work longest beyond the typical time
    earliest    float64[ranks]  ns per step that each rank would be done earlier at most without lateness: of any
                rank or set that was replayed, or of all together
    earlier_at_times  float64[ranks]  ns per step that each would be done earlier if no rank were late in those
                steps in which it is: half of them in one step and the other half in the next are balanced on
                average, and yet they wait
    even_split  ns per step that the same work would save if it were spread evenly over the ranks
    slow_links  ranks whose collectives transfer more slowly than the same ones of other ranks
    absent      what ranks without a trace cost at least
    absent_limit  ns per step that they cost at most: all time that all present ranks are in collectives with them
    held_up_by  int64[ranks]: the rank that makes it late, itself if none does
    work        before each collective, where only typical steps exceed what is typical; all_work: in all steps
    """

    by_rank: Float64
    certain_by_rank: Float64
    longer: Float64
    sets: tuple[Suspect, ...]
    earliest: Float64
    earlier_at_times: Float64
    even_split: float
    slow_links: tuple[Suspect, ...]
    absent: Suspect
    absent_limit: float
    held_up_by: Int64
    work: WorkWindows
    all_work: WorkWindows

    @property
    def imbalance(self) -> float:
        """Return the ns per step that all differences between the ranks cost, on average or at times."""
        return max(self.imbalance_of_others(()), self.at_times)

    @property
    def at_times(self) -> float:
        """Return the ns per step that ranks cost together in those steps in which they are late."""
        return self.at_times_of_others(())

    def imbalance_of_others(self, members: Sequence[int]) -> float:
        """Return the ns per step that differences on average cost those that aren't `members`."""
        return _cost_to_others(self.earliest, members)

    def at_times_of_others(self, members: Sequence[int]) -> float:
        """Return the ns per step that lateness in some steps costs those that aren't `members`."""
        return _cost_to_others(self.earlier_at_times, members)


def straggler_costs(job: DistributedJob, matching: Matching, split: WaitingSplit) -> StragglerCosts:
    """Compute what every rank's lateness costs; all 0 if nothing was compared."""
    all_work, ranks = work_windows(job), len(job.sources)
    replayed_job = start_in_thread(lambda: JobReplay(job, matching, split, all_work))
    work = without_odd_steps(job, all_work)
    member = select(job.table.member, work.rows)
    net, positive = _sum_excess_by_rank(member, work, ranks)
    replayed = np.argsort(-positive, kind="stable")[:MAX_REPLAYED_RANKS].tolist()
    sets = [*_find_late_hosts(job, net), *_list_largest_sets(net, ranks)]
    similar, transfers = (
        _collect_similar_transfers(job, matching, split),
        _compute_typical_transfers(job, matching, split),
    )
    absent = _select_recurring_waits(job, matching, split, _estimate_waits_for_absent_ranks(job, matching, split))
    slow = _find_slow_link_ranks(job, matching, split, similar)
    longer = tuple(np.flatnonzero(net > 0).tolist())
    # Where half of the ranks work longer, each is typical of the others: without their excess, the job is as fast
    # as the other half.
    groups = [(rank,) for rank in replayed] + [members for members, _ in sets] + [tuple(range(ranks)), longer]
    typical = np.zeros((ranks, len(groups) + len(slow) + 2), np.bool_)
    for column, members in enumerate(groups):
        typical[list(members), column] = True
    saving = np.zeros((len(matching), len(slow) + 2), np.int64)
    for column, rank in enumerate(slow):
        saving[:, column] = np.maximum(_excess_over_others(similar, _collectives_of(job, matching, [rank])), 0)
    saving[:, -2], saving[:, -1] = absent, _max_waits_for_absent_ranks(matching, split)
    saving[_in_odd_steps(job, matching, split)] = 0
    never_late = without_lateness_at_times(job, all_work)
    network = replayed_job()
    savings = start_in_thread(
        lambda: (_compute_savings(network, never_late), _compute_savings(network, even_split(job, work)))
    )
    result = network.replay(ReplayScenarios(typical, saving), work)
    steps = _median_typical_steps(job)
    earlier_at_times, even = (each / steps for each in savings())
    earlier = result.earlier / steps
    certain, certain_work = earlier, without_hidden_lateness(job, matching, work)
    if certain_work is not None:
        certain = network.replay(ReplayScenarios(typical[:, : len(groups)]), certain_work).earlier / steps
    by_rank, certain_by_rank = np.zeros(ranks), np.zeros(ranks)
    for column, rank in enumerate(replayed):
        by_rank[rank], certain_by_rank[rank] = (
            _cost_to_others(each[:, column], (rank,)) for each in (earlier, certain)
        )
    return StragglerCosts(
        by_rank=by_rank,
        certain_by_rank=certain_by_rank,
        longer=positive / steps,
        sets=tuple(
            Suspect(
                members,
                _cost_to_others(earlier[:, column], members),
                host=host,
                certain=_cost_to_others(certain[:, column], members),
            )
            for column, (members, host) in enumerate(sets, len(replayed))
        ),
        earliest=earlier[:, : len(groups)].max(axis=1, initial=0.0),
        earlier_at_times=earlier_at_times,
        even_split=_cost_to_others(even, ()),
        slow_links=tuple(
            _limit_link(
                each,
                network,
                work,
                _excess_over_others(similar, _collectives_of(job, matching, each.members)),
                transfers,
                steps,
            )
            for each in _merge_links(
                [
                    Suspect((rank,), _cost_to_others(earlier[:, column], ()), "transfer")
                    for column, rank in enumerate(slow, len(groups))
                ]
            )
        ),
        absent=Suspect((), _cost_to_others(earlier[:, -2], ()), "absent"),
        absent_limit=_cost_to_others(earlier[:, -1], ()),
        held_up_by=_find_lateness_sources(job, split, matching, result, replayed),
        work=work,
        all_work=all_work,
    )


def faster_network_savings(
    job: DistributedJob, matching: Matching, split: WaitingSplit, work: WorkWindows, percents: Sequence[int]
) -> list[float] | None:
    """Return the ns per step that the job saves at each percent by which its compared transfers become shorter.

    What ranks wait for each other stays. None where it isn't recorded when all collectives could have started.
    """
    if not (select(job.table.held, split.compared) > 0).all():
        return None
    saving = _compute_typical_transfers(job, matching, split)[:, None] * np.array(percents, np.int64) // 100
    nobody = np.zeros((len(job.sources), len(percents)), np.bool_)
    result = JobReplay(job, matching, split, work).replay(ReplayScenarios(nobody, saving), work)
    earlier = result.earlier / _median_typical_steps(job)
    return [_cost_to_others(each, ()) for each in earlier.T]


def _median_typical_steps(job: DistributedJob) -> float:
    """Return how many typical steps of the job its ranks recorded, as a median; at least 1."""
    return median([count_typical_steps(job, member) for member in range(len(job.sources))]) if job.sources else 1


def _sum_excess_by_rank(member: Int32, work: WorkWindows, ranks: int) -> tuple[Int64, Int64]:
    """Return int64[ranks], the ns that each rank works longer than is typical: in all, and where it does."""
    excess = work.excess
    net = sums_by_number(member, excess, ranks)
    return net, sums_by_number(member, np.maximum(excess, 0, out=excess), ranks)


def _compute_savings(network: JobReplay, work: WorkWindows) -> Int64:
    """Return int64[ranks], the ns that each would be done earlier if all worked as long as is typical of them."""
    return network.replay(ReplayScenarios(np.ones((network.ranks, 1), np.bool_)), work).earlier[:, 0]


def _cost_to_others(earlier: Float64, members: Sequence[int]) -> float:
    """Return the largest saving of the other ranks, as the job is done when the last rank is."""
    others = np.delete(earlier, list(members))
    return max(float((others if len(others) else earlier).max(initial=0.0)), 0.0)


def _find_late_hosts(job: DistributedJob, net: Int64) -> list[tuple[tuple[int, ...], str | None]]:
    """Return the ranks of each host with several ranks, most of which work longer than is typical."""
    hosts: dict[str, list[int]] = {}
    for member, source in enumerate(job.sources):
        if source.host is not None:
            hosts.setdefault(source.host, []).append(member)
    late = {
        host: net[members] > max(net[members].max() * MIN_HOST_EXCESS_RATIO, 0) for host, members in hosts.items()
    }
    return [
        (tuple(members), host)
        for host, members in hosts.items()
        if len(hosts) > 1 and len(members) > 1 and late[host].mean() >= MIN_LATE_HOST_SHARE
    ]


def _list_largest_sets(net: Int64, ranks: int) -> list[tuple[tuple[int, ...], str | None]]:
    """Return the two, three, ... ranks that work longest beyond the typical time."""
    order = [rank for rank in np.argsort(-net, kind="stable").tolist() if net[rank] > 0]
    max_size = min(MAX_SET_SIZE, ranks // 4, len(order))
    return [(tuple(sorted(order[:size])), None) for size in range(2, max_size + 1)]


def _find_slow_link_ranks(
    job: DistributedJob, matching: Matching, split: WaitingSplit, similar: Sequence[_SimilarTransfers]
) -> list[int]:
    """Return the ranks whose collectives transfer longest beyond the typical time."""
    excess = np.zeros(len(matching), np.int64)
    for each in similar:
        others = medians_without_each(each.medians)
        excess[each.instances] = np.maximum(each.transfer - others[each.channel].astype(np.int64), 0)
    rows = np.flatnonzero(split.compared)
    sums = sums_by_number(
        select(job.table.member, rows), excess[select(matching.instance, rows)], len(job.sources)
    )
    return [rank for rank in np.argsort(-sums, kind="stable")[:MAX_SET_SIZE].tolist() if sums[rank] > 0]


def _collectives_of(job: DistributedJob, matching: Matching, members: Sequence[int]) -> Bool:
    """Return bool[c]: the collectives in which any of these ranks takes part."""
    touched = np.zeros(len(matching), np.bool_)
    for member in members:  # whose rows are contiguous
        begin, end = np.searchsorted(job.table.member, [member, member + 1])
        touched[matching.instance[begin:end]] = True
    return touched


def _limit_link(
    suspect: Suspect, network: JobReplay, work: WorkWindows, excess: Int64, transfer: Int64, steps: float
) -> Suspect:
    """Return ranks with slow links and what they cost at most, where some transfers can't be compared.

    excess, transfer  int64[c] ns: see `_excess_over_others`; of all compared collectives in steps that count
    """
    unknown = (excess == ABSENT) & (transfer > 0)
    if not unknown.any():
        return suspect
    saving = np.where(unknown, transfer, np.where(transfer > 0, np.maximum(excess, 0), 0))[:, None]
    result = network.replay(ReplayScenarios(np.zeros((network.ranks, 1), np.bool_), saving), work)
    limit = _cost_to_others(result.earlier[:, 0] / steps, ())
    return msgspec.structs.replace(suspect, limit=max(limit, suspect.cost))


def _merge_links(suspects: Sequence[Suspect]) -> tuple[Suspect, ...]:
    """Merge the costliest suspects into one: ranks that share the same slow collectives cost the same."""
    if not suspects:
        return ()
    cost = max(suspect.cost for suspect in suspects)
    costliest = [suspect for suspect in suspects if suspect.cost >= _SHARED_LINK_COST_RATIO * cost]
    members = tuple(sorted(suspect.members[0] for suspect in costliest))
    return (Suspect(members, cost, "transfer"),) if cost > 0 else ()


def _find_lateness_sources(
    job: DistributedJob, split: WaitingSplit, matching: Matching, result: ReplayResult, replayed: Sequence[int]
) -> Int64:
    """Return int64[ranks], the rank whose lateness each rank passes on when it arrives last."""
    rows = np.flatnonzero(split.compared)
    instance, waiting = select(matching.instance, rows), select(split.waiting, rows)
    longest = np.maximum(highest_by_number(instance, waiting, len(matching)), 0)
    last = rows[waiting == 0]
    late = sums_by_number(job.table.member[last], longest[matching.instance[last]], len(job.sources))
    by = np.arange(len(late))
    if len(replayed):
        arrivals = result.arrivals[:, : len(replayed)].copy()
        arrivals[replayed, np.arange(len(replayed))] = 0
        best = arrivals.argmax(axis=1)
        held_up = (arrivals[by, best] >= _MIN_HELD_UP_SHARE * late) & (late > 0)
        by[held_up] = np.asarray(replayed)[best[held_up]]
    return by


# ---- transfers ------------------------------------------------------------------------------------------


def _choose_example_rows(matching: Matching, split: WaitingSplit) -> Int64:
    """Return int64[c], one row of each compared collective, NO_CODE for the others."""
    rows = np.full(len(matching), NO_CODE, np.int64)
    compared = np.flatnonzero(split.compared)
    rows[select(matching.instance, compared)] = compared
    return rows


def _in_odd_steps(job: DistributedJob, matching: Matching, split: WaitingSplit) -> Bool:
    """Return bool[c]: the compared collectives in steps that don't count."""
    examples = _choose_example_rows(matching, split)
    odd: Bool = ~typical_job_steps(job)[job.table.step[examples]] & (examples >= 0)
    return odd


def _compute_typical_transfers(job: DistributedJob, matching: Matching, split: WaitingSplit) -> Int64:
    """Return int64[c], the ns of the transfer of each compared collective in steps that count, 0 of the others."""
    examples = _choose_example_rows(matching, split)
    counted = (examples >= 0) & ~_in_odd_steps(job, matching, split)
    return np.where(counted, split.transfer[examples], 0)


class _SimilarTransfers(msgspec.Struct, frozen=True):
    """The transfers of collectives that are the same in name, bytes, and number of ranks.

    instances  int64[n]  the collectives
    channel    int64[n]  collectives of one group, or messages between the same ranks, have the same: they are
               not compared with each other
    transfer   int64[n] ns
    medians    float64[channels] ns
    """

    instances: Int64
    channel: Int64
    transfer: Int64
    medians: Float64


def _collect_similar_transfers(
    job: DistributedJob, matching: Matching, split: WaitingSplit
) -> list[_SimilarTransfers]:
    """Return the transfers that can be compared with those of other ranks, none of which is missing."""
    table, examples = job.table, _choose_example_rows(matching, split)
    known = np.flatnonzero((examples >= 0) & matching.complete)
    rows = examples[known]
    message = np.sort(np.stack([table.source[rows], table.target[rows]]), axis=0)
    channel = group(table.group[rows], *message).which
    similar = group(table.collective[rows], table.message[rows], matching.sizes[known])
    found = []
    for same in positions_by_value(similar.which, len(similar)):
        which, channels = dense_codes(channel[same])
        if channels > 1:
            transfer = split.transfer[rows[same]]
            medians = group_medians(transfer, which, np.bincount(which))
            found.append(_SimilarTransfers(known[same], which, transfer, medians))
    return found


def _excess_over_others(similar: Sequence[_SimilarTransfers], touched: Bool) -> Int64:
    """Return int64[c], the ns by which transfers exceed the median of the same ones that aren't touched.

    It is 0 for what isn't touched, and ABSENT where all that are the same are touched: a rank with a slow link may
    be in each of them.
    """
    excess = np.where(touched, ABSENT, 0)
    for each in similar:
        mine = touched[each.instances]
        slow = np.zeros(len(each.medians), np.bool_)
        slow[each.channel[mine]] = True
        if mine.any() and not slow.all():
            excess[each.instances[mine]] = each.transfer[mine] - int(median(each.medians[~slow].tolist()))
    return np.where((excess < 0) & (excess != ABSENT), 0, excess)


def _estimate_waits_for_absent_ranks(job: DistributedJob, matching: Matching, split: WaitingSplit) -> Int64:
    """Return int64[c], the ns that all present ranks waited at least for ranks whose traces are missing.

    A collective of the same group that moved as much or more in less time shows how long the transfer needs.
    """
    waits = np.zeros(len(matching), np.int64)
    if matching.complete.all():
        return waits
    table, examples = job.table, _choose_example_rows(matching, split)
    rows = examples[examples >= 0]
    transfer, sizes = split.transfer[rows], table.message[rows]
    fastest = fastest_transfers(group(table.group[rows], table.collective[rows]).which, sizes, transfer)
    late = (sizes != ABSENT) & (transfer >= MIN_ABSENT_WAIT_RATIO * fastest)
    waits[matching.instance[rows]] = np.where(late, transfer - fastest, 0)
    waits[matching.complete] = 0
    return waits


def _select_recurring_waits(job: DistributedJob, matching: Matching, split: WaitingSplit, waits: Int64) -> Int64:
    """Return the waits for missing ranks, or 0 if they aren't in most of the typical steps, as of a straggler."""
    examples = _choose_example_rows(matching, split)
    step = np.append(job.table.step, NO_CODE)[examples]
    step[step == NO_CODE] = len(job.steps)  # outside of them
    by_step = np.bincount(step, waits, len(job.steps) + 1)[:-1][judged_steps(job)]
    if len(by_step) < MIN_STEPS or is_in_most_steps(by_step):
        return waits
    return np.zeros_like(waits)


def _max_waits_for_absent_ranks(matching: Matching, split: WaitingSplit) -> Int64:
    """Return int64[c], the ns that all present ranks waited at most for ranks whose traces are missing."""
    examples = _choose_example_rows(matching, split)
    return np.where((examples >= 0) & ~matching.complete, split.transfer[examples], 0)
