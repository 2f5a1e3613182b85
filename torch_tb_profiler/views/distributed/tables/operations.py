"""Communication operations by rank, process group and name; and by process group and name."""

from __future__ import annotations

from collections.abc import Sequence

from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.view import Members, RunView
from torch_tb_profiler.views._shared.job.members import RANK_SUMMARIES, compare_members, judge_members
from torch_tb_profiler.views.distributed import columns, operations
from torch_tb_profiler.views.distributed.group_names import group_label, spelled_ranks
from torch_tb_profiler.views.distributed.payload.communication import CollectiveRow
from torch_tb_profiler.views.distributed.payload.tables import (
    GroupRow,
    GroupRows,
    GroupsParams,
    OperationRows,
    OperationsParams,
)
from torch_tb_profiler.views.distributed.reasons import reasons
from torch_tb_profiler.views.distributed.tables.paging import page


def build(members: Members[RankSummary], params: OperationsParams) -> OperationRows:
    """A page of the table by rank."""
    rows, total = page(_rows(members), params, lambda row: (row.name, row.worker, row.group_label))
    return OperationRows(rows, total, params.first, reasons(compare_members(members)))


@derived
def _rows(members: Members[RankSummary]) -> Sequence[CollectiveRow]:
    return operations.collective_rows(compare_members(members), judge_members(members).totals)


def build_groups(members: Members[RankSummary], params: GroupsParams) -> GroupRows:
    """A page of the table by process group."""
    rows, total = page(_group_rows(members), params, lambda row: (row.name, row.label, row.family))
    return GroupRows(rows, total, params.first, reasons(compare_members(members)))


@derived
def _group_rows(members: Members[RankSummary]) -> Sequence[GroupRow]:
    comparison, uses, totals = compare_members(members), columns.uses_of(members), columns.totals_of(members)
    family = {code: each.label for each in columns.dimensions_of(members) for code in each.groups}
    rows = []
    for code, (group, use) in enumerate(zip(comparison.job.groups, uses, strict=True)):
        for total in totals.get(code, []):
            operation = operations.operation(comparison, total)
            rows.append(
                GroupRow(
                    **{name: getattr(operation, name) for name in operation.__struct_fields__},
                    group=code,
                    label=group_label(group, code),
                    family=family.get(code),
                    ranks=spelled_ranks(group),
                    size=group.size,
                    present=len(use.members),
                    absent=len(use.absent_ranks),
                    matched_by=use.matched_by,
                    mismatches=use.mismatches,
                    assumed=group.assumed,
                )
            )
    return rows


OPERATIONS = RunView(
    "distributed/operations",
    "Operations by rank",
    OperationsParams,
    OperationRows,
    build,
    RANK_SUMMARIES,
    answers="The communication of every rank by process group and collective.",
)

GROUPS = RunView(
    "distributed/groups",
    "Operations by process group",
    GroupsParams,
    GroupRows,
    build_groups,
    RANK_SUMMARIES,
    answers="The communication of every process group by collective.",
)
