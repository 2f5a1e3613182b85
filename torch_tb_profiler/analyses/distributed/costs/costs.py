"""What each rank's lateness costs the job: the difference to the same job in which the rank works as long as
usual.

A rank that is late because it waits for another works no longer than usual, and costs nothing. Two ranks that are
late at once cost nothing each, as the other still is: so ranks are also replayed together, and the ranks of a
host.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.costs.own_work import OwnWork, own_work
from torch_tb_profiler.analyses.distributed.costs.replay import Replayed, WhatIf, replay
from torch_tb_profiler.analyses.distributed.costs.transfers import slower_transfers, waits_for_absent
from torch_tb_profiler.analyses.distributed.job import Job
from torch_tb_profiler.analyses.distributed.matching.matching import Matching
from torch_tb_profiler.analyses.distributed.waiting import Split
from torch_tb_profiler.base.median import median
from torch_tb_profiler.model.trace import Float64, Int64

REPLAYED = 24
"""Of this many ranks, those that work longest beyond the usual, the cost is computed; that of the others is 0."""

TOGETHER = 8
"""At most so many ranks (or a quarter of them) are replayed together."""

ALIKE, MOST_OF_A_HOST = 0.5, 0.75
"""The ranks of a host are late together if this share of them works longer than usual, each by at least half of
what the longest one does."""

_HELD_UP = 0.5
"""A rank that, without another, would have arrived earlier by this share of its lateness is held up by it."""


class Suspect(msgspec.Struct, frozen=True):
    """Ranks that were replayed together; `cost` ns per step that they cost the others.

    why   work: they work as long as usual; transfer: so do their links; absent: ranks that are missing arrive in
          time
    host  whose ranks they are, if all of one were replayed
    """

    members: tuple[int, ...]
    cost: float
    why: str = "work"
    host: str | None = None


class Costs(msgspec.Struct, frozen=True):
    """alone     ns per step that each rank costs the others, float64[ranks]
    together     sets of ranks: those of each host, and those that work longest beyond the usual
    balanced     ns per step that all ranks' differences cost
    links        ranks whose collectives transfer more slowly than the same ones of other ranks
    absent       what ranks cost that are not here
    held_up_by   int64[ranks]: the rank that makes it late, itself if none does
    """

    alone: Float64
    together: tuple[Suspect, ...]
    balanced: float
    links: tuple[Suspect, ...]
    absent: Suspect
    held_up_by: Int64
    work: OwnWork


def costs(job: Job, matching: Matching, split: Split) -> Costs:
    """Of every rank; all 0 where nothing was compared."""
    own, ranks = own_work(job), len(job.sources)
    member = job.table.member[own.rows]
    net, positive = np.zeros(ranks, np.int64), np.zeros(ranks, np.int64)
    np.add.at(net, member, own.excess)
    np.add.at(positive, member, np.maximum(own.excess, 0))
    likely = np.argsort(-positive, kind="stable")[:REPLAYED].tolist()
    sets = [*_hosts(job, net), *_largest(net, ranks)]
    slower, absent = slower_transfers(job, matching, split), waits_for_absent(job, matching, split)
    linked = _linked(job, matching, split, slower)
    groups = [(rank,) for rank in likely] + [members for members, _ in sets] + [tuple(range(ranks))]
    usual = np.zeros((ranks, len(groups) + len(linked) + 1), np.bool_)
    for column, members in enumerate(groups):
        usual[list(members), column] = True
    sooner = np.zeros((len(matching), usual.shape[1]), np.int64)
    for column, rank in enumerate(linked, len(groups)):
        touched = np.zeros(len(matching), np.bool_)
        touched[matching.instance[job.table.member == rank]] = True
        sooner[:, column] = np.where(touched, slower, 0)
    sooner[:, -1] = absent
    replayed = replay(job, matching, split, own, WhatIf(usual, sooner))
    steps = max(median([max(len(source.summary.steps), 1) for source in job.sources]), 1) if ranks else 1
    earlier = replayed.earlier / steps
    alone = np.zeros(ranks)
    alone[likely] = [_cost(earlier[:, column], members) for column, members in enumerate(groups[: len(likely)])]
    together = [
        Suspect(members, _cost(earlier[:, column], members), host=host)
        for column, (members, host) in enumerate(sets, len(likely))
    ]
    return Costs(
        alone=alone,
        together=tuple(together),
        balanced=max([_cost(column, ()) for column in earlier[:, : len(groups)].T], default=0.0),
        links=_links(
            [
                Suspect((rank,), _cost(earlier[:, column], ()), "transfer")
                for column, rank in enumerate(linked, len(groups))
            ]
        ),
        absent=Suspect((), _cost(earlier[:, -1], ()), "absent"),
        held_up_by=_held_up(job, split, matching, replayed, likely),
        work=own,
    )


def _cost(earlier: Float64, members: Sequence[int]) -> float:
    """What the others gain: the most, as the job is done when the last of them is."""
    others = np.delete(earlier, list(members))
    return max(float((others if len(others) else earlier).max(initial=0.0)), 0.0)


def _hosts(job: Job, net: Int64) -> list[tuple[tuple[int, ...], str | None]]:
    """The ranks of each host, of several hosts that have more than one, if most of them work longer than usual."""
    hosts: dict[str, list[int]] = {}
    for member, source in enumerate(job.sources):
        if source.host is not None:
            hosts.setdefault(source.host, []).append(member)
    late = {host: net[each] > max(net[each].max() * ALIKE, 0) for host, each in hosts.items()}
    return [
        (tuple(each), host)
        for host, each in hosts.items()
        if len(hosts) > 1 and len(each) > 1 and late[host].mean() >= MOST_OF_A_HOST
    ]


def _largest(net: Int64, ranks: int) -> list[tuple[tuple[int, ...], str | None]]:
    """Two, three, ... ranks that work longest beyond the usual."""
    order = [rank for rank in np.argsort(-net, kind="stable").tolist() if net[rank] > 0]
    most = min(TOGETHER, ranks // 4, len(order))
    return [(tuple(sorted(order[:count])), None) for count in range(2, most + 1)]


def _linked(job: Job, matching: Matching, split: Split, slower: Int64) -> list[int]:
    """The ranks whose collectives take longest beyond the usual."""
    sums = np.zeros(len(job.sources), np.int64)
    rows = np.flatnonzero(split.compared)
    np.add.at(sums, job.table.member[rows], slower[matching.instance[rows]])
    return [rank for rank in np.argsort(-sums, kind="stable")[:TOGETHER].tolist() if sums[rank] > 0]


def _links(suspects: Sequence[Suspect]) -> tuple[Suspect, ...]:
    """Most costly first; ranks that share the same slow collectives cost the same, and are one suspect."""
    if not suspects:
        return ()
    most = max(suspect.cost for suspect in suspects)
    first = [suspect for suspect in suspects if suspect.cost >= 0.95 * most]
    return (Suspect(tuple(sorted(each.members[0] for each in first)), most, "transfer"),) if most > 0 else ()


def _held_up(job: Job, split: Split, matching: Matching, replayed: Replayed, likely: Sequence[int]) -> Int64:
    """int64[ranks]: whose lateness it is that a rank passes on when it arrives last."""
    late = np.zeros(len(job.sources), np.int64)
    rows = np.flatnonzero(split.compared)
    longest = np.zeros(len(matching), np.int64)
    np.maximum.at(longest, matching.instance[rows], split.waiting[rows])
    last = rows[split.waiting[rows] == 0]
    np.add.at(late, job.table.member[last], longest[matching.instance[last]])
    by = np.arange(len(late))
    if len(likely):
        arrivals = replayed.arrivals[:, : len(likely)].copy()
        arrivals[likely, np.arange(len(likely))] = 0
        best = arrivals.argmax(axis=1)
        held = (arrivals[by, best] >= _HELD_UP * late) & (late > 0)
        by[held] = np.asarray(likely)[best[held]]
    return by
