"""Who arrives late, in which steps, and what these ranks do meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from torch_tb_profiler.analyses.distributed import stragglers as delays
from torch_tb_profiler.analyses.distributed import verdict as verdicts
from torch_tb_profiler.analyses.distributed.causes import StragglerCause, find_work_cause
from torch_tb_profiler.analyses.distributed.comparison import RankComparison
from torch_tb_profiler.analyses.distributed.heat_map import lateness_by_step
from torch_tb_profiler.views._shared.job.members import MAX_EXPLAINED_RANKS
from torch_tb_profiler.views._shared.job.wording import cause_cell, held_up_cell
from torch_tb_profiler.views._shared.text import Text, shorten_frame
from torch_tb_profiler.views.distributed.payload.job import Verdict
from torch_tb_profiler.views.distributed.payload.stragglers import HeatMap, Meanwhile, RankTime, Straggler
from torch_tb_profiler.views.distributed.words import meanwhile_summary


def verdict(comparison: RankComparison, judged: verdicts.StragglerVerdict, headline: Text) -> Verdict:
    """Who stands out, at what cost."""
    named = comparison.sources[judged.ranks[0].member] if judged.ranks else None
    suspect = judged.suspect if judged.kind == "straggler" else None
    return Verdict(
        kind=judged.kind,
        worker=named.worker if named else None,
        rank=named.rank if named else None,
        text=headline,
        cost_ns=suspect.cost if suspect else None,
        cause=judged.cause.kind if judged.cause else None,
        host=suspect.host if suspect else None,
    )


def stragglers(
    comparison: RankComparison,
    rows: Sequence[delays.Straggler],
    judged: verdicts.StragglerVerdict,
    before: Sequence[delays.StragglerActivity],
) -> list[Straggler]:
    """Every rank, most cost first; empty if nothing was compared."""
    causes = {row.member: find_work_cause(comparison, row) for row in before}
    if judged.cause is not None:
        causes[judged.cause.member] = judged.cause
    return [_straggler(comparison, row, causes.get(row.member)) for row in rows]


def _straggler(comparison: RankComparison, row: delays.Straggler, cause: StragglerCause | None) -> Straggler:
    by = None if row.held_up_by is None else comparison.sources[row.held_up_by]
    source = comparison.sources[row.member]
    return Straggler(
        worker=source.worker,
        rank=source.rank,
        host=source.host,
        collectives=row.collectives,
        last=row.last,
        last_ratio=row.last / row.collectives if row.collectives else None,
        cost_ns=row.cost,
        delay_ns=row.delay,
        delay_per_step_ns=row.delay_per_step,
        waiting_ns=row.waiting,
        waiting_per_step_ns=row.waiting_per_step,
        cause="held_up" if by else cause.kind if cause else None,
        why=held_up_cell(by) if by else cause_cell(cause) if cause else (),
        held_up_by=by.worker if by else None,
    )


def heat_map(comparison: RankComparison) -> HeatMap | None:
    """None if no arrivals can be compared."""
    lateness = lateness_by_step(comparison)
    if lateness is None:
        return None
    return HeatMap([source.worker for source in comparison.sources], lateness.steps, lateness.rows)


def meanwhile(comparison: RankComparison, rows: Sequence[delays.StragglerActivity]) -> list[Meanwhile]:
    """What the ranks that cost most did in the windows in which they worked longer than usual."""
    return [
        Meanwhile(
            worker=comparison.sources[row.member].worker,
            rank=comparison.sources[row.member].rank,
            summary=meanwhile_summary(row),
            collectives=row.collectives,
            steps=row.steps,
            latest=row.latest,
            window_ns=row.busy,
            median_window_ns=row.median_busy,
            categories=_times(row.categories, {}),
            host=_times(row.host, {}),
            frames=[RankTime(each.name, shorten_frame(each.name), each.time, each.median) for each in row.frames],
            kernels=_times(row.kernels, row.short_names),
        )
        for row in rows[:MAX_EXPLAINED_RANKS]
    ]


def _times(rows: Iterable[delays.RankTime], short: Mapping[str, str]) -> list[RankTime]:
    return [RankTime(row.name, short.get(row.name, row.name), row.time, row.median) for row in rows]
