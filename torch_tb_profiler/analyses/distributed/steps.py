"""The steps of every rank: their averages, and their communication split into transfer and waiting."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.comparison import Comparison


class AverageStep(msgspec.Struct, frozen=True):
    """Mean ns over the `steps` complete steps of a rank."""

    member: int
    steps: int
    duration: float
    computation: float
    overlap: float
    exposed: float
    other: float


def average_steps(comparison: Comparison) -> list[AverageStep]:
    """Of every rank that has complete steps."""
    rows = []
    for member, source in enumerate(comparison.sources):
        steps = source.summary.complete_steps()
        if steps:
            columns = ("duration", "computation", "overlap", "exposed", "other")
            means = [sum(getattr(step, name) for step in steps) / len(steps) for name in columns]
            rows.append(AverageStep(member, len(steps), *means))
    return rows


class StepWaiting(msgspec.Struct, frozen=True):
    """ns of a rank's communication in one step (None: outside of the steps); None if none of it was compared."""

    member: int
    step: str | None
    transfer: int | None
    waiting: int | None


def waiting_by_step(comparison: Comparison) -> list[StepWaiting]:
    """Every step of every rank, and outside of the steps where something was compared."""
    job, split = comparison.job, comparison.split
    width = len(job.steps) + 1
    step = np.where(job.table.step >= 0, job.table.step, width - 1)
    owner = job.table.member.astype(np.int64) * width + step
    transfer, waiting = split.sums(job, owner, len(job.sources) * width)
    compared = np.bincount(owner[split.compared], minlength=len(transfer)) > 0
    codes = {name: code for code, name in enumerate(job.steps)}
    rows = []
    for member, source in enumerate(job.sources):
        outside = member * width + width - 1
        cells: list[tuple[str | None, int]] = [
            (name, member * width + codes[name])
            for name in dict.fromkeys(step.name for step in source.summary.steps)
        ]
        if compared[outside]:
            cells.append((None, outside))
        for name, cell in cells:
            times = (int(transfer[cell]), int(waiting[cell])) if compared[cell] else (None, None)
            rows.append(StepWaiting(member, name, *times))
    return rows


class AverageWaiting(msgspec.Struct, frozen=True):
    """Mean ns over the complete steps of a rank in which communication was compared; None without any."""

    member: int
    transfer: float | None
    waiting: float | None


def average_waiting(comparison: Comparison, rows: Sequence[StepWaiting]) -> list[AverageWaiting]:
    """Of every rank."""
    by_member: dict[int, list[StepWaiting]] = {}
    for row in rows:
        by_member.setdefault(row.member, []).append(row)
    averages = []
    for member, source in enumerate(comparison.sources):
        complete = {step.name for step in source.summary.complete_steps()}
        own = [row for row in by_member.get(member, []) if row.step in complete]
        transfers = [row.transfer for row in own if row.transfer is not None]
        waits = [row.waiting for row in own if row.waiting is not None]
        means = (sum(transfers) / len(transfers), sum(waits) / len(waits)) if transfers else (None, None)
        averages.append(AverageWaiting(member, *means))
    return averages
