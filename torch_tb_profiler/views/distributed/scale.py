"""The bounded part of the page: percentiles, hosts of late ranks, groups by family."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from torch_tb_profiler.analyses.distributed import steps as analysis
from torch_tb_profiler.analyses.distributed.comparison import RankComparison
from torch_tb_profiler.analyses.distributed.groups import ParallelDimension
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.analyses.distributed.stragglers import Straggler
from torch_tb_profiler.analyses.distributed.totals import GroupTotal
from torch_tb_profiler.analyses.distributed.verdict import StragglerVerdict
from torch_tb_profiler.view import Members
from torch_tb_profiler.views._shared.job.members import compare_members, judge_members
from torch_tb_profiler.views.distributed import columns
from torch_tb_profiler.views.distributed.group_names import spelled_ranks
from torch_tb_profiler.views.distributed.payload.scale import GroupFamily, LateHost, Spread

MOST_NAMES = 6
MOST_FAMILIES = 30


def spreads(members: Members[RankSummary]) -> list[Spread]:
    """Of every measure that is known of a rank."""
    sources = compare_members(members).sources
    rows = judge_members(members).rows
    return [
        Spread(
            each.measure,
            each.ranks,
            each.mean,
            each.min,
            each.p10,
            each.median,
            each.p90,
            each.p99,
            each.max,
            sources[each.min_member].worker,
            sources[each.max_member].worker,
        )
        for each in analysis.rank_spreads(columns.averages_of(members), columns.waits_of(members), rows)
    ]


def late_hosts(
    comparison: RankComparison, rows: Sequence[Straggler], listed: int, verdict: StragglerVerdict
) -> list[LateHost]:
    """The hosts of the first `listed` rows, in their order."""
    ranks = Counter(source.host for source in comparison.sources if source.host is not None)
    if len(ranks) < 2:
        return []
    suspect = verdict.suspect if verdict.kind == "straggler" else None
    hosts = dict.fromkeys(comparison.sources[row.member].host for row in rows[:listed])
    most: dict[str | None, float] = {}
    for row in rows:
        host = comparison.sources[row.member].host
        most[host] = max(most.get(host, 0.0), row.cost)
    late = []
    for host in hosts:
        if host is not None and ranks[host] > 1:
            together = suspect is not None and suspect.host == host
            cost = suspect.cost if together and suspect is not None else most[host]
            late.append(LateHost(host, ranks[host], cost, together))
    return late


def group_families(members: Members[RankSummary]) -> list[GroupFamily]:
    """Most groups first; of a job with very many, the first thirty."""
    return [_family(members, dimension) for dimension in columns.dimensions_of(members)[:MOST_FAMILIES]]


def _family(members: Members[RankSummary], dimension: ParallelDimension) -> GroupFamily:
    comparison, uses, totals = compare_members(members), columns.uses_of(members), columns.totals_of(members)
    own = [total for code in dimension.groups for total in totals.get(code, [])]
    calls: Counter[str] = Counter()
    for total in own:
        calls[comparison.job.name_of(total.operation)] += total.calls
    waits = {code: wait for code in dimension.groups if (wait := _waiting(totals.get(code, []))) is not None}
    slowest = max(waits, key=lambda code: waits[code], default=None)
    groups = comparison.job.groups
    return GroupFamily(
        label=dimension.label,
        groups=len(dimension.groups),
        complete=sum(len(uses[code].members) == groups[code].size for code in dimension.groups),
        size=max(groups[code].size or 0 for code in dimension.groups),
        backends=sorted({backend for code in dimension.groups for backend in uses[code].backends}),
        names=[name for name, _ in calls.most_common(MOST_NAMES)],
        collectives=sum(total.collectives for total in own),
        compared=sum(total.compared for total in own),
        latency_ns=_sum(total.latency for total in own),
        transfer_ns=_sum(total.transfer for total in own),
        waiting_ns=_sum(total.waiting for total in own),
        exposed_ns=_sum(total.exposed for total in own),
        slowest_group=slowest,
        slowest_ranks=None if slowest is None else spelled_ranks(groups[slowest]),
        slowest_waiting_ns=None if slowest is None else waits[slowest],
    )


def _waiting(totals: Sequence[GroupTotal]) -> int | None:
    return _sum(total.waiting for total in totals)


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
