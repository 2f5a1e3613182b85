"""The steps of every rank: their averages, and their communication split into transfer and waiting."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.comparison import Comparison
from torch_tb_profiler.analyses.distributed.matching.matching import untimed
from torch_tb_profiler.analyses.distributed.reduction.rank_steps import STEP
from torch_tb_profiler.analyses.shared.optional import optional_floats
from torch_tb_profiler.model.trace import Bool, Float64, Int64


class StepColumns(msgspec.Struct, frozen=True):
    """The steps of all ranks, columns of length n in order of rank; times in ns.

    member    position in the job's sources; step: code of its name in `Job.steps`
    complete  with the device work: no step of a rank whose operations all lack their kernels is
    """

    member: Int64
    step: Int64
    start: Int64
    duration: Int64
    computation: Int64
    overlap: Int64
    exposed: Int64
    other: Int64
    complete: Bool


def step_columns(comparison: Comparison) -> StepColumns:
    """Every step of every rank."""
    codes = {name: code for code, name in enumerate(comparison.job.steps)}
    each = [source.summary.steps for source in comparison.sources]
    numbers = {names: [codes[name] for name in names] for names in {steps.names for steps in each}}
    step = [number for steps in each for number in numbers[steps.names]]
    table = np.frombuffer(b"".join([steps.parts for steps in each]), STEP)
    columns = {name: table[name].astype(STEP[name].newbyteorder("=")) for name in STEP.names or ()}
    member = np.repeat(np.arange(len(each)), [len(steps) for steps in each])
    columns["complete"] &= ~np.isin(member, untimed(comparison.job))
    return StepColumns(member=member, step=np.array(step, np.int64), **columns)


class AverageStep(msgspec.Struct, frozen=True):
    """Mean ns over the `steps` complete steps of a rank."""

    member: int
    steps: int
    duration: float
    computation: float
    overlap: float
    exposed: float
    other: float


def average_steps(comparison: Comparison, columns: StepColumns) -> list[AverageStep]:
    """Of every rank that has complete steps."""
    member = columns.member[columns.complete]
    counts = np.bincount(member, minlength=len(comparison.sources))
    known = np.flatnonzero(counts)
    means = [
        (np.bincount(member, times[columns.complete], len(counts))[known] / counts[known]).tolist()
        for times in (columns.duration, columns.computation, columns.overlap, columns.exposed, columns.other)
    ]
    return [AverageStep(*row) for row in zip(known.tolist(), counts[known].tolist(), *means, strict=True)]


class StepSums(msgspec.Struct, frozen=True):
    """ns by rank and step [ranks, steps + 1], the last column outside of the steps; `compared`: whether anything
    was, without which the others mean nothing."""

    transfer: Int64
    waiting: Int64
    compared: Bool


def step_sums(comparison: Comparison) -> StepSums:
    """Time in which several of a rank's operations run counts once."""
    job, split = comparison.job, comparison.split
    shape = len(job.sources), len(job.steps) + 1
    step = np.where(job.table.step >= 0, job.table.step, shape[1] - 1)
    owner = job.table.member.astype(np.int64) * shape[1] + step
    transfer, waiting = split.sums(job, owner, shape[0] * shape[1])
    compared = np.bincount(owner[split.compared], minlength=len(transfer)) > 0
    return StepSums(transfer.reshape(shape), waiting.reshape(shape), compared.reshape(shape))


class StepWaiting(msgspec.Struct, frozen=True):
    """ns of a rank's communication in one step (None: outside of the steps); None if none of it was compared."""

    member: int
    step: str | None
    transfer: int | None
    waiting: int | None


def waiting_by_step(comparison: Comparison, sums: StepSums) -> list[StepWaiting]:
    """Every step of every rank, and outside of the steps where something was compared."""
    codes = {name: code for code, name in enumerate(comparison.job.steps)}
    rows = []
    for member, source in enumerate(comparison.sources):
        names: list[str | None] = list(dict.fromkeys(source.summary.steps.names))
        if sums.compared[member, -1]:
            names.append(None)
        for name in names:
            cell = member, -1 if name is None else codes[name]
            known = bool(sums.compared[cell])
            times = (int(sums.transfer[cell]), int(sums.waiting[cell])) if known else (None, None)
            rows.append(StepWaiting(member, name, *times))
    return rows


class AverageWaiting(msgspec.Struct, frozen=True):
    """Mean ns over the complete steps of a rank in which communication was compared; None without any."""

    member: int
    transfer: float | None
    waiting: float | None


def average_waiting(comparison: Comparison, columns: StepColumns, sums: StepSums) -> list[AverageWaiting]:
    """Of every rank."""
    counted = np.zeros(sums.compared.shape, np.bool_)
    counted[columns.member[columns.complete], columns.step[columns.complete]] = True
    counted &= sums.compared
    transfer, waiting = (optional_floats(_means(times, counted)) for times in (sums.transfer, sums.waiting))
    return [AverageWaiting(*row) for row in zip(range(len(transfer)), transfer, waiting, strict=True)]


def _means(times: Int64, counted: Bool) -> Float64:
    """float64[ranks]: of the counted cells of each row, NaN without any."""
    counts = counted.sum(axis=1)
    sums = np.where(counted, times, 0).sum(axis=1)
    means: Float64 = np.full(len(counts), np.nan)
    np.divide(sums, counts, out=means, where=counts > 0)
    return means
