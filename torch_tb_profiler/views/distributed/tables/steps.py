"""The steps of every rank."""

from __future__ import annotations

from collections.abc import Sequence

from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.analyses.distributed.steps import StepWaiting, waiting_by_step
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.view import Members, RunView
from torch_tb_profiler.views._shared.job.members import RANK_SUMMARIES, compare_members
from torch_tb_profiler.views.distributed import columns, ranks
from torch_tb_profiler.views.distributed.payload.tables import StepRow, StepRows, StepsParams
from torch_tb_profiler.views.distributed.reasons import reasons
from torch_tb_profiler.views.distributed.tables.paging import page


def build(members: Members[RankSummary], params: StepsParams) -> StepRows:
    """A page of the table."""
    rows, total = page(_rows(members), params, lambda row: (row.worker, row.step))
    return StepRows(rows, total, params.first, reasons(compare_members(members)))


@derived
def _rows(members: Members[RankSummary]) -> Sequence[StepRow]:
    """In order of rank, then of time; after them what a rank communicates outside of its steps."""
    comparison = compare_members(members)
    waits: dict[tuple[str, str | None], StepWaiting] = {
        (comparison.sources[row.member].worker, row.step): row
        for row in waiting_by_step(comparison, columns.sums_of(members))
    }
    rows = []
    for step in ranks.step_times(comparison):
        wait = waits[step.worker, step.step]
        rows.append(
            StepRow(
                step.worker, step.rank, step.step, step.start_ns, step.complete, step.duration_ns,
                step.computation_ns, step.overlap_ns, step.exposed_ns, step.other_ns, wait.transfer, wait.waiting,
            )
        )  # fmt: skip
    for (worker, name), wait in waits.items():
        if name is None:
            rank = comparison.sources[wait.member].rank
            empty = (None,) * 7
            rows.append(StepRow(worker, rank, None, *empty, wait.transfer, wait.waiting))
    return rows


STEPS = RunView(
    "distributed/steps",
    "Steps of the ranks",
    StepsParams,
    StepRows,
    build,
    RANK_SUMMARIES,
    answers="Every step of every rank: computation, communication, waiting.",
)
