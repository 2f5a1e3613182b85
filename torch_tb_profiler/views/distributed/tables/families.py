"""Device work of every rank by family of kernels."""

from __future__ import annotations

from collections.abc import Sequence

from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.view import Members, RunView
from torch_tb_profiler.views._shared.job.members import RANK_SUMMARIES, compare_members
from torch_tb_profiler.views.distributed import ranks
from torch_tb_profiler.views.distributed.payload.ranks import RankFamily
from torch_tb_profiler.views.distributed.payload.tables import FamiliesParams, FamilyRows
from torch_tb_profiler.views.distributed.reasons import reasons
from torch_tb_profiler.views.distributed.tables.paging import page


def build(members: Members[RankSummary], params: FamiliesParams) -> FamilyRows:
    """A page of the table."""
    rows, total = page(_rows(members), params, lambda row: (row.family, row.kind, row.kernel, row.worker))
    return FamilyRows(rows, total, params.first, reasons(compare_members(members)))


@derived
def _rows(members: Members[RankSummary]) -> Sequence[RankFamily]:
    return ranks.families(compare_members(members))


FAMILIES = RunView(
    "distributed/families",
    "Kernel families by rank",
    FamiliesParams,
    FamilyRows,
    build,
    RANK_SUMMARIES,
    answers="The device work of every rank by family of kernels.",
)
