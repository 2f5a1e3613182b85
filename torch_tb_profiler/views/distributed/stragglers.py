"""Who arrives late, in which steps, and what these ranks do meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torch_tb_profiler.analyses.distributed import meanwhile as windows
from torch_tb_profiler.analyses.distributed import stragglers as delays
from torch_tb_profiler.analyses.distributed.comparison import Comparison
from torch_tb_profiler.views.distributed.payload.stragglers import HeatMap, Meanwhile, RankTime, Straggler
from torch_tb_profiler.views.distributed.words import meanwhile_summary


def stragglers(comparison: Comparison, rows: Sequence[delays.Straggler]) -> list[Straggler]:
    """Every rank, most delay first; empty if no arrivals can be compared."""
    return [
        Straggler(
            worker=comparison.sources[row.member].worker,
            rank=comparison.sources[row.member].rank,
            collectives=row.collectives,
            last=row.last,
            last_ratio=row.last / row.collectives if row.collectives else None,
            delay_ns=row.delay,
            delay_per_step_ns=row.delay_per_step,
            waiting_ns=row.waiting,
        )
        for row in rows
    ]


def heat_map(comparison: Comparison) -> HeatMap | None:
    """None if no arrivals can be compared."""
    lateness = delays.lateness_by_step(comparison)
    if lateness is None:
        return None
    return HeatMap([source.worker for source in comparison.sources], lateness.steps, lateness.rows)


def meanwhile(comparison: Comparison, rows: Sequence[windows.Meanwhile]) -> list[Meanwhile]:
    """What the ranks with most delay did before the collectives where they arrived last."""
    return [
        Meanwhile(
            worker=comparison.sources[row.member].worker,
            rank=comparison.sources[row.member].rank,
            summary=meanwhile_summary(row),
            collectives=row.collectives,
            steps=row.steps,
            latest=row.latest,
            window_ns=row.window,
            median_window_ns=row.median_window,
            categories=_times(row.categories),
            host=_times(row.host),
            kernels=_times(row.kernels),
        )
        for row in rows
    ]


def _times(rows: Iterable[windows.RankTime]) -> list[RankTime]:
    return [RankTime(row.name, row.time, row.median) for row in rows]
