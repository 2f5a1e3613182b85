"""The steps of every rank: their averages, transfer and waiting in them, and how much the ranks differ.

Exposed communication is communication not overlapped with computation. It consists of transfer and waiting, too:

    computation  |=======|
    operation        |---- waits ----|= transfer =|
    exposed              |----------------------|      the end of the operation: its transfer, and waiting before

The exposed part of an operation counts as its end, since computation stops when it needs the result. If
computation goes on until the end, part of the transfer is overlapped, and the actual waiting is longer than the
figure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.comparison import RankComparison
from torch_tb_profiler.analyses.distributed.late_once import typical_job_steps
from torch_tb_profiler.analyses.distributed.matching import ranks_without_times
from torch_tb_profiler.analyses.distributed.operations import select
from torch_tb_profiler.analyses.distributed.rank_summary import RANK_STEP
from torch_tb_profiler.analyses.distributed.stragglers import Straggler
from torch_tb_profiler.analyses.shared.payload_values import optional_floats
from torch_tb_profiler.base.intervals import merge_by_owner
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.trace import NO_CODE, Bool, Float64, Int64


class StepColumns(msgspec.Struct, frozen=True):
    """The steps of all ranks as columns of length n in order of rank; times in ns.

    member    index in the job's sources
    step      code of its name in `DistributedJob.steps`
    complete  its device work is recorded; never True for a rank whose operations all lack their kernels
    typical   complete, and not far longer or shorter than the rank's other steps
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
    typical: Bool


@derived
def step_columns(comparison: RankComparison) -> StepColumns:
    """Return every step of every rank."""
    codes = {name: code for code, name in enumerate(comparison.job.steps)}
    rank_steps = [source.summary.steps for source in comparison.sources]
    numbers = {names: [codes[name] for name in names] for names in {steps.names for steps in rank_steps}}
    step = [number for steps in rank_steps for number in numbers[steps.names]]
    table = np.frombuffer(b"".join([steps.parts for steps in rank_steps]), RANK_STEP)
    columns = {name: table[name].astype(RANK_STEP[name].newbyteorder("=")) for name in RANK_STEP.names or ()}
    member = np.repeat(np.arange(len(rank_steps)), [len(steps) for steps in rank_steps])
    for flag in ("complete", "typical"):
        columns[flag] &= ~np.isin(member, ranks_without_times(comparison.job))
    return StepColumns(member=member, step=np.array(step, np.int64), **columns)


def mean_counted_step_ns(comparison: RankComparison, member: int) -> float:
    """Return the mean of a rank's complete steps that costs are means over, ns; 0 without any.

    These are typical of the job. Where gradients are reduced in every fourth step only, the steps that wait for a
    late rank may be odd ones of another rank, of whose typical step the cost would be more than the whole.
    """
    columns = step_columns(comparison)
    counted = columns.complete & (columns.member == member) & typical_job_steps(comparison.job)[columns.step]
    return float(columns.duration[counted].mean()) if counted.any() else 0.0


class AverageRankStep(msgspec.Struct, frozen=True):
    """Mean ns over the `steps` typical steps of a rank."""

    member: int
    steps: int
    duration: float
    computation: float
    overlap: float
    exposed: float
    other: float


def average_steps(comparison: RankComparison, columns: StepColumns) -> list[AverageRankStep]:
    """Return the average step of every rank that has typical steps."""
    member = columns.member[columns.typical]
    counts = np.bincount(member, minlength=len(comparison.sources))
    known = np.flatnonzero(counts)
    means = [
        (np.bincount(member, times[columns.typical], len(counts))[known] / counts[known]).tolist()
        for times in (columns.duration, columns.computation, columns.overlap, columns.exposed, columns.other)
    ]
    return [AverageRankStep(*row) for row in zip(known.tolist(), counts[known].tolist(), *means, strict=True)]


MIN_UNDERUSED_SHARE = 0.1
"""Ranks aren't balanced if one computes less per step than the median rank by this share of a typical step."""


class UnderusedRank(msgspec.Struct, frozen=True):
    """The rank that computes least in its typical steps; its time and that of the median rank in ns per step."""

    member: int
    time: float
    median: float


@derived
def find_underused_rank(comparison: RankComparison) -> UnderusedRank | None:
    """Return the rank whose device computes notably less than the median rank's, None if there is none.

    Nobody waits for it, so it costs no time: but it could take over work of the others.
    """
    if not all(source.summary.by_kernels for source in comparison.sources):
        return None  # what the host computes outside of operators isn't recorded
    averages = average_steps(comparison, step_columns(comparison))
    if len(averages) < 2:
        return None
    times = [row.computation + row.overlap for row in averages]
    step = sorted(row.duration for row in averages)[len(averages) // 2]
    least, middle = min(times), sorted(times)[len(times) // 2]
    if middle - least < max(MIN_UNDERUSED_SHARE * step, 1.0):
        return None
    return UnderusedRank(averages[times.index(least)].member, least, middle)


# ---- transfer and waiting -------------------------------------------------------------------------------


class StepSums(msgspec.Struct, frozen=True):
    """Transfer and waiting, int64[ranks, steps + 1] ns; the last column is outside of the steps.

    compared  whether anything was compared; otherwise the sums are meaningless
    """

    transfer: Int64
    waiting: Int64
    compared: Bool


def step_sums(comparison: RankComparison) -> StepSums:
    """Sum transfer and waiting by rank and step; time in which several of a rank's operations run counts once."""
    job, split = comparison.job, comparison.split
    shape = len(job.sources), len(job.steps) + 1
    step = np.where(job.table.step >= 0, job.table.step, shape[1] - 1)
    owner = job.table.member.astype(np.int64) * shape[1] + step
    transfer, waiting = split.sums(job, owner, shape[0] * shape[1])
    compared = np.bincount(select(owner, split.compared), minlength=len(transfer)) > 0
    return StepSums(transfer.reshape(shape), waiting.reshape(shape), compared.reshape(shape))


class StepWaiting(msgspec.Struct, frozen=True):
    """Transfer and waiting in ns of a rank in one step, None if nothing in it was compared.

    step  its name, None for communication outside of the steps
    """

    member: int
    step: str | None
    transfer: int | None
    waiting: int | None


def waiting_by_step(comparison: RankComparison, sums: StepSums) -> list[StepWaiting]:
    """Return every step of every rank, and what was compared outside of the steps."""
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


class AverageRankWaiting(msgspec.Struct, frozen=True):
    """Mean ns over a rank's typical steps in which communication was compared, None without such steps."""

    member: int
    transfer: float | None
    waiting: float | None


def average_waiting(comparison: RankComparison, columns: StepColumns, sums: StepSums) -> list[AverageRankWaiting]:
    """Return the average transfer and waiting of every rank."""
    included = np.zeros(sums.compared.shape, np.bool_)
    included[columns.member[columns.typical], columns.step[columns.typical]] = True
    included &= sums.compared
    transfer, waiting = (
        optional_floats(_compute_row_means(times, included)) for times in (sums.transfer, sums.waiting)
    )
    return [AverageRankWaiting(*row) for row in zip(range(len(transfer)), transfer, waiting, strict=True)]


def _compute_row_means(times: Int64, included: Bool) -> Float64:
    """Return float64[ranks], the mean of the included cells of each row, NaN without any."""
    counts = included.sum(axis=1)
    sums = np.where(included, times, 0).sum(axis=1)
    means: Float64 = np.full(len(counts), np.nan)
    np.divide(sums, counts, out=means, where=counts > 0)
    return means


# ---- exposed communication ------------------------------------------------------------------------------


class ExposedSteps(msgspec.Struct, frozen=True):
    """Exposed communication in the s steps of a rank that count; ns of operations that were compared.

    names        of the steps
    transfer     int64[s]  time in which any operation moves data
    waiting      int64[s]  time in which an operation waits for other ranks, and none moves data
    waiting_for  index of another rank -> int64[s], not all 0: the part of `waiting` in operations at which that
                 rank is known to arrive last; the rest can't be attributed to a rank
    bounded      a rank of some operation wasn't compared, and waiting for it counts as transfer: `transfer` is at
                 most, `waiting` at least that
    """

    names: tuple[str, ...]
    transfer: Int64
    waiting: Int64
    waiting_for: Mapping[int, Int64]
    bounded: bool


class ExposedCommunication(msgspec.Struct, frozen=True):
    """Mean ns of exposed communication per typical step of a rank; `bounded` as in ExposedSteps."""

    transfer: float
    waiting: float
    bounded: bool = False


def exposed_communication(comparison: RankComparison, member: int) -> ExposedCommunication | None:
    """Return the mean of a rank's `exposed_steps`, None if it has none."""
    return _average_exposed_steps(exposed_steps(comparison, member))


def all_communication(comparison: RankComparison, member: int) -> ExposedCommunication | None:
    """Return the mean of all communication of a rank that was compared, overlapped with computation or not."""
    return _average_exposed_steps(exposed_steps(comparison, member, overlapped=True))


def job_transfer(comparison: RankComparison) -> float:
    """Return the ns per step that all compared collectives of the job transfer, each counted once.

    No path through the job has more: who waits for a rank may wait for what that transfers with others.
    """
    rows = np.flatnonzero(comparison.split.compared)
    _, first = np.unique(comparison.matching.instance[rows], return_index=True)
    count = max((len(source.summary.steps) for source in comparison.sources), default=1)
    return int(comparison.split.transfer[rows[first]].sum()) / max(count, 1)


def _average_exposed_steps(exposed: ExposedSteps | None) -> ExposedCommunication | None:
    if exposed is None:
        return None
    count = len(exposed.names)
    transfer, waiting = int(exposed.transfer.sum()) / count, int(exposed.waiting.sum()) / count
    return ExposedCommunication(transfer, waiting, exposed.bounded)


def exposed_steps(
    comparison: RankComparison, member: int, step: str = "", *, overlapped: bool = False
) -> ExposedSteps | None:
    """Return the exposed communication of a rank's typical steps, or of a complete one.

    None if none of them has communication that was compared.

    With `overlapped`, communication that is overlapped with computation counts, too. Without kernels the
    computation is the host's, which goes on while other threads communicate: then all communication counts, as in
    the overview.
    """
    job, split, arrivals = comparison.job, comparison.split, comparison.arrivals
    summary = comparison.sources[member].summary
    counted = (
        [name for name in summary.steps.complete_names() if name == step]
        if step
        else summary.steps.typical_names()
    )
    names = tuple(dict.fromkeys(counted))
    number = {name: index for index, name in enumerate(names)}
    place = np.array([*(number.get(name, NO_CODE) for name in job.steps), NO_CODE], np.int64)
    place_of_row = place[job.table.step]
    rows = np.flatnonzero(split.compared & (job.table.member == member) & (place_of_row >= 0))
    if len(rows) == 0:
        return None
    within, count = place_of_row[rows], len(names)
    end, latency = job.table.end[rows], job.table.latency[rows]
    exposed = job.table.exposed[rows] if summary.by_kernels and not overlapped else latency
    exposed_start = end - exposed
    transfer_start = end - np.minimum(exposed, split.transfer[rows])
    transfer = merge_by_owner(within, transfer_start, end).totals(count)
    waiting = merge_by_owner(within, exposed_start, end).totals(count) - transfer

    collective = comparison.matching.instance[rows]
    last = np.where(arrivals.attributable[collective], job.table.member[arrivals.last[collective]], NO_CODE)
    last[last == member] = NO_CODE
    # Waiting for several ranks at once counts once, for the rank that is waited for most.
    waiting_for: dict[int, Int64] = {}
    length = transfer_start - exposed_start
    claims = np.bincount(last[last >= 0], length[last >= 0], len(job.sources))
    begin, assigned = transfer_start.copy(), transfer
    for late in np.argsort(-claims, kind="stable").tolist():
        if claims[late] <= 0:
            break
        begin[last == late] = exposed_start[last == late]
        reached = merge_by_owner(within, begin, end).totals(count)
        if (reached > assigned).any():
            waiting_for[late] = reached - assigned
        assigned = reached
    return ExposedSteps(names, transfer, waiting, waiting_for, bool((~split.complete[rows]).any()))


# ---- spread over the ranks ------------------------------------------------------------------------------

SpreadMeasure = Literal["duration", "computation", "overlap", "exposed", "other", "transfer", "waiting", "cost"]


class RankSpread(msgspec.Struct, frozen=True):
    """The distribution of one measure over the `ranks` ranks that have it, in ns per step.

    p10, median, p90, p99   percentiles, linear between the two nearest ranks
    min_member, max_member  indices of the first ranks with the smallest and the largest value
    """

    measure: SpreadMeasure
    ranks: int
    mean: float
    min: float
    p10: float
    median: float
    p90: float
    p99: float
    max: float
    min_member: int
    max_member: int


def rank_spreads(
    steps: Sequence[AverageRankStep], waits: Sequence[AverageRankWaiting], rows: Sequence[Straggler]
) -> Iterator[RankSpread]:
    """Return the spread of every measure that is known of at least one rank."""
    for measure in ("duration", "computation", "overlap", "exposed", "other"):
        yield from _find_spread(measure, [(row.member, getattr(row, measure)) for row in steps])
    yield from _find_spread("transfer", [(row.member, row.transfer) for row in waits])
    yield from _find_spread("waiting", [(row.member, row.waiting) for row in waits])
    yield from _find_spread("cost", [(row.member, row.cost) for row in sorted(rows, key=lambda row: row.member)])


def _find_spread(measure: SpreadMeasure, values: Sequence[tuple[int, float | None]]) -> Iterator[RankSpread]:
    known = [(member, value) for member, value in values if value is not None]
    if not known:
        return
    times = np.array([value for _, value in known])
    lowest, highest = int(times.argmin()), int(times.argmax())
    p10, median, p90, p99 = np.percentile(times, (10, 50, 90, 99)).tolist()
    yield RankSpread(
        measure=measure,
        ranks=len(known),
        mean=float(times.sum() / len(times)),
        min=float(times[lowest]),
        p10=p10,
        median=median,
        p90=p90,
        p99=p99,
        max=float(times[highest]),
        min_member=known[lowest][0],
        max_member=known[highest][0],
    )
