"""Which ranks keep the others waiting, as every view that says so takes it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.analyses.distributed.stragglers import (
    Straggler,
    StragglerActivity,
    straggler_activity,
    stragglers,
)
from torch_tb_profiler.analyses.distributed.totals import WorkerTotal, worker_totals
from torch_tb_profiler.analyses.distributed.verdict import StragglerVerdict, judge_ranks
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.view import Members
from torch_tb_profiler.views._shared.job.members import compare_members, members_costs

EXPLAINED = 3
"""Of so many ranks it is shown what they did meanwhile; the cause of as many more is named."""


class Judgment(msgspec.Struct, frozen=True):
    """rows: every rank, most cost first; before: what the first of them did meanwhile."""

    rows: Sequence[Straggler]
    totals: Sequence[WorkerTotal]
    before: Sequence[StragglerActivity]
    verdict: StragglerVerdict


@derived
def judge_members(members: Members[RankSummary]) -> Judgment:
    """Of the members that are ready."""
    comparison, cost = compare_members(members), members_costs(members)
    rows, totals = stragglers(comparison, cost), worker_totals(comparison)
    explained = [row.member for row in rows if row.cost > 0][: 2 * EXPLAINED]
    before = straggler_activity(comparison, cost.work, explained)
    return Judgment(rows, totals, before, judge_ranks(comparison, cost, rows, totals, before))
