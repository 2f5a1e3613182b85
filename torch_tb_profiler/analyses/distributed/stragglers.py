"""How much each rank keeps the others waiting, and what that costs.

A rank that itself waits for others (in another group) is late through no fault of its own: only the rest of its
lateness is its delay. Not every delay costs: others may compute in the meantime (see `costs`).
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.arrivals import Arrivals
from torch_tb_profiler.analyses.distributed.comparison import Comparison
from torch_tb_profiler.analyses.distributed.costs.costs import Costs
from torch_tb_profiler.analyses.distributed.costs.own_work import OwnWork
from torch_tb_profiler.analyses.distributed.job import Job
from torch_tb_profiler.analyses.distributed.waiting import Split
from torch_tb_profiler.analyses.shared.optional import optional_ints
from torch_tb_profiler.base.intervals import covered_time, merge, merge_by_owner
from torch_tb_profiler.model.trace import ABSENT, Int64


class Straggler(msgspec.Struct, frozen=True):
    """How often and how much one rank is late.

    member       its position in the job's sources
    collectives  those it took part in whose last arrival is known; last: in how many it arrived last itself
    delay        ns; see `_delays`
    delay_per_step  ns over the number of its steps
    waiting      ns that it waited for others in all compared collectives; waiting_per_step likewise
    cost         ns per step that the job would save if it worked as long as usual
    held_up_by   whose lateness it passes on, None if none or its own
    """

    member: int
    collectives: int
    last: int
    delay: int
    delay_per_step: float
    waiting: int
    waiting_per_step: float
    cost: float
    held_up_by: int | None


def stragglers(comparison: Comparison, costs: Costs) -> list[Straggler]:
    """Every rank, most cost first, then most delay; empty if nothing was compared.

    Collectives in which others waited before the last rank recorded do not count.
    """
    job, arrivals, split = comparison.job, comparison.arrivals, comparison.split
    if not split.compared.any():
        return []
    table, count = job.table, len(job.sources)
    counted = arrivals.attributable
    took_part = np.bincount(table.member[counted[comparison.matching.instance] & split.compared], minlength=count)
    last = arrivals.last[counted]
    times = np.bincount(table.member[last], minlength=count)
    waiting = np.zeros(count, np.int64)
    compared = np.flatnonzero(split.compared)
    np.add.at(waiting, table.member[compared], split.waiting[compared])
    since = _since_previous(job, costs.work)
    rows = []
    delays = _delays(job, split, last, arrivals, since).tolist()
    for member, source in enumerate(job.sources):
        delay, by = delays[member], int(costs.held_up_by[member])
        rows.append(
            Straggler(
                member=member,
                collectives=int(took_part[member]),
                last=int(times[member]),
                delay=delay,
                delay_per_step=delay / max(len(source.summary.steps), 1),
                waiting=int(waiting[member]),
                waiting_per_step=int(waiting[member]) / max(len(source.summary.steps), 1),
                cost=float(costs.alone[member]),
                held_up_by=None if by == member else by,
            )
        )
    return sorted(rows, key=lambda row: (-row.cost, -row.delay, -row.last, row.member))


def _since_previous(job: Job, work: OwnWork) -> Int64:
    """int64[k] ns from the end of the group's previous operation to each one; 0 where there is none."""
    since = np.zeros(len(job.table), np.int64)
    later = np.flatnonzero(work.behind >= 0)
    rows, before = work.rows[later], work.rows[work.behind[later]]
    since[rows] = job.table.start[rows] - job.table.end[before]
    return since


def _delays(job: Job, split: Split, rows: Int64, arrivals: Arrivals, since: Int64) -> Int64:
    """int64[ranks] ns that others waited for a rank through its own fault.

    rows  operations that arrived last

    What a rank waited for others since the group's previous operation (or since the others arrived, if that was
    earlier) is not its fault. Time in which several collectives wait for it counts once.
    """
    table, compared = job.table, np.flatnonzero(split.compared)
    begin = table.end[compared] - table.latency[compared]
    start, lateness = table.start[rows], arrivals.lateness[rows]
    earliest = start - np.maximum(lateness, since[rows])
    # One line for all ranks: their times do not overlap, so that one set of intervals answers for all.
    low = min(begin.min(initial=0), earliest.min(initial=0))
    width = int(table.end[compared].max(initial=0)) - int(low) + 1
    lines, line = (table.member[each].astype(np.int64) * width - low for each in (compared, rows))
    waiting = merge(lines + begin, lines + begin + split.waiting[compared])
    own = lateness - covered_time(waiting, line + earliest, line + start)
    return merge_by_owner(table.member[rows], start - own, start).totals(len(job.sources))


class LatenessByStep(msgspec.Struct, frozen=True):
    """ns after the median arrival of the others, summed over a step's collectives.

    steps  those in which arrivals were compared
    rows   per rank one sum per step, None where nothing was compared
    """

    steps: list[str]
    rows: list[list[int | None]]


def lateness_by_step(comparison: Comparison) -> LatenessByStep | None:
    """None if no arrivals were compared."""
    if not (comparison.arrivals.lateness != ABSENT).any():
        return None
    cells = lateness_cells(comparison)
    shown = np.flatnonzero((cells != ABSENT).any(axis=0))
    return LatenessByStep(
        [comparison.job.steps[code] for code in shown.tolist()], [optional_ints(row) for row in cells[:, shown]]
    )


def lateness_cells(comparison: Comparison) -> Int64:
    """int64[ranks, steps], ABSENT where nothing was compared."""
    job, arrivals = comparison.job, comparison.arrivals
    table = job.table
    shape = len(job.sources), len(job.steps)
    rows = np.flatnonzero((arrivals.lateness != ABSENT) & (table.step >= 0))
    cell = table.member[rows].astype(np.int64) * shape[1] + table.step[rows]
    sums = np.zeros(shape[0] * shape[1], np.int64)
    np.add.at(sums, cell, arrivals.lateness[rows])
    compared = np.bincount(cell, minlength=len(sums)) > 0
    return np.where(compared, sums, ABSENT).reshape(shape)
