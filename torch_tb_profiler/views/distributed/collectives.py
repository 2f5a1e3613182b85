"""The table of collectives across ranks."""

from __future__ import annotations

from torch_tb_profiler.analyses.distributed.collectives import (
    CollectiveFilter,
    CollectiveTable,
    collective_table,
    collective_table_row,
    select_collectives,
)
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.view import Members, RunView
from torch_tb_profiler.views._shared.job.members import RANK_SUMMARIES, compare_members
from torch_tb_profiler.views.distributed.group_names import group_label
from torch_tb_profiler.views.distributed.payload.collectives import (
    CollectiveInstance,
    Collectives,
    CollectivesParams,
)
from torch_tb_profiler.views.distributed.reasons import reasons


@derived
def _table(members: Members[RankSummary]) -> CollectiveTable:
    return collective_table(compare_members(members))


@derived
def _mismatches(members: Members[RankSummary]) -> dict[int, str]:
    """Collective -> what differs between its ranks."""
    texts: dict[int, list[str]] = {}
    for mismatch in compare_members(members).matching.mismatches:
        text = f"{mismatch.what}: {', '.join(mismatch.values)}"
        texts.setdefault(mismatch.instance, []).append(text)
    return {collective: "; ".join(each) for collective, each in texts.items()}


def build(members: Members[RankSummary], params: CollectivesParams) -> Collectives:
    """A page of the table; NotFoundError for a group, step or worker that is not there."""
    comparison = compare_members(members)
    kept = CollectiveFilter(
        group=params.group if params.group >= 0 else None,
        name=params.name or None,
        step=params.step or None,
        last=params.late or None,
        mismatched=params.mismatched,
    )
    ids = select_collectives(comparison, _table(members), kept, params.sort, params.descending)
    page = [instance(members, each) for each in ids[params.rows]]
    return Collectives(page, len(ids), params.first, reasons(comparison))


def instance(members: Members[RankSummary], collective: int) -> CollectiveInstance:
    """A row of the table."""
    comparison = compare_members(members)
    row = collective_table_row(comparison, _table(members), collective)
    return CollectiveInstance(
        id=collective,
        group=row.group,
        group_label=group_label(comparison.job.groups[row.group], row.group),
        name=comparison.job.name_of(row.operation),
        sequence=row.sequence,
        step=comparison.job.step_of(row.operation),
        start_ns=row.start,
        end_ns=row.end,
        ranks=row.ranks,
        size=row.size,
        dtype=comparison.job.dtype_of(row.operation),
        bytes=row.message,
        latency_ns=row.latency,
        transfer_ns=row.transfer,
        waiting_ns=row.waiting,
        skew_ns=row.skew,
        late_worker=row.last.worker if row.last else None,
        late_rank=row.last.rank if row.last else None,
        algorithm_bandwidth=row.algorithm_bandwidth,
        bus_bandwidth=row.bus_bandwidth,
        lower_bound=row.lower_bound,
        mismatch=_mismatches(members).get(collective),
    )


COLLECTIVES = RunView(
    "distributed/collectives",
    "Collectives",
    CollectivesParams,
    Collectives,
    build,
    RANK_SUMMARIES,
    answers="Collectives one by one: how long, how large, who came last.",
)
