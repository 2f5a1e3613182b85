"""Who keeps the others waiting.

    rank 0  ......|-- waits -----------|== transfer ==|
    rank 1  ........|-- waits ---------|== transfer ==|
    rank 2  ...........................|== transfer ==|      late: from the others' median arrival to its own
                  ^ median of the others

While a rank itself waits for others (in another group), its lateness is not of its own making.
Arrivals are begins of kernels (or of the host's calls) on the job's clock; a difference below the error of the
clocks tells nothing.
"""

from __future__ import annotations

from bisect import bisect

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.clocks import Clocks
from torch_tb_profiler.analyses.distributed.job import Job, JobTable
from torch_tb_profiler.analyses.distributed.matching import Matching
from torch_tb_profiler.analyses.distributed.waiting import Split
from torch_tb_profiler.analyses.shared.breakdown import CATEGORIES
from torch_tb_profiler.base.intervals import covered, merge, total
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Int64

MOST_LATENESS = 0.9
"""What a rank did is told of the collectives that make up this share of its lateness."""


class Arrivals(msgspec.Struct, frozen=True):
    """When ranks reached a collective. Columns by operation of the job's table: `late` int64[k] ns after the
    median of the other ranks (0 for those before it), `middle` bool[k] the rank in the middle; by collective:

    first     int64[c]  job time of the first arrival, ABSENT without two ranks on one clock
    skew      int64[c]  ns from the first to the last arrival, ABSENT likewise
    last      int64[c]  position in the table of the last to arrive; NO_CODE where the clocks' error is larger
    cut       bool[c]   the last one had not yet begun to record when the others arrived
    """

    late: Int64
    middle: Bool
    first: Int64
    skew: Int64
    last: Int64
    cut: Bool


def arrivals(job: Job, matching: Matching, clocks: Clocks, split: Split) -> Arrivals:
    """Arrivals of all compared collectives."""
    table, count = job.table, len(matching)
    shift, aligned = clocks.shifts()
    rows = np.flatnonzero(split.compared & aligned[table.member])
    time = table.start[rows] + shift[table.member[rows]]
    order = np.lexsort((time, matching.instance[rows]))
    rows, time = rows[order], time[order]
    instance = matching.instance[rows]
    begin = np.searchsorted(instance, instance, "left")
    size = np.searchsorted(instance, instance, "right") - begin
    several = size > 1
    rows, time, instance, begin, size = (each[several] for each in (rows, time, instance, begin, size))
    begin = np.searchsorted(instance, instance, "left")
    place = np.arange(len(rows)) - begin

    late = np.full(len(table), ABSENT)
    late[rows] = np.maximum(time - _median_of_others(time, begin, size, place), 0)
    middle = np.zeros(len(table), np.bool_)
    middle[rows[place == (size - 1) // 2]] = True
    first, skew = np.full(count, ABSENT), np.full(count, ABSENT)
    final = np.flatnonzero(place == size - 1)
    which, at = instance[final], begin[final]
    first[which], skew[which] = time[at], time[final] - time[at]

    last, cut = np.full(count, NO_CODE), np.zeros(count, np.bool_)
    error = np.zeros(count, np.int64)
    np.maximum.at(error, instance, clocks.residuals()[table.member[rows]])
    told = skew[which] > 2 * error[which]
    which, final = which[told], final[told]
    last[which] = rows[final]
    recording = shift[table.member[rows[final]]]
    cut[which] = recording > time[final] - late[rows[final]]
    return Arrivals(late, middle, first, skew, last, cut)


def _median_of_others(time: Int64, begin: Int64, size: Int64, place: Int64) -> Int64:
    """int64[k]: the median of the sorted times of the same collective without one's own."""
    low, high = ((middle + (middle >= place)) for middle in ((size - 2) // 2, (size - 1) // 2))
    below, above = time[begin + low], time[begin + high]
    middle: Int64 = below + (above - below) // 2
    return middle


def _delay(job: Job, split: Split, member: int, rows: Int64, late: Int64) -> int:
    """ns that others waited for this rank of its own making: rows are the operations where it came last.

    What it waited for others since the group's previous operation, or since they came if that is longer, made it
    late through no fault of its own. Time in which several collectives wait for it counts once.
    """
    table = job.table
    waits = np.flatnonzero(split.compared & (table.member == member))
    begin = table.end[waits] - table.busy[waits]
    waiting = merge(begin, begin + split.waiting[waits])
    start, by = table.start[rows], late[rows]
    own = by - covered(waiting, start - np.maximum(by, table.window[rows]), start)
    return total(merge(start - own, start))


class Straggler(msgspec.Struct, frozen=True):
    """How often and how much one rank is late; see `views.distributed_payload.Straggler`."""

    member: int
    collectives: int
    last: int
    delay: int
    waited: int


def stragglers(job: Job, matching: Matching, found: Arrivals, split: Split) -> list[Straggler]:
    """Every rank, most delay first. Collectives that began before the last rank recorded do not count."""
    count = len(job.sources)
    told = (found.last >= 0) & ~found.cut
    of_told = told[matching.instance] & split.compared if len(job.table) else np.zeros(0, np.bool_)
    took_part = np.bincount(job.table.member[of_told], minlength=count)
    last = found.last[told]
    who = job.table.member[last]
    times = np.bincount(who, minlength=count)
    delay = [
        _delay(job, split, each, last[who == each], found.late) if times[each] else 0 for each in range(count)
    ]
    waited = np.zeros(count, np.int64)
    waiting = np.flatnonzero(split.compared)
    np.add.at(waited, job.table.member[waiting], split.waiting[waiting])
    rows = [
        Straggler(*row)
        for row in zip(range(count), took_part.tolist(), times.tolist(), delay, waited.tolist(), strict=True)
    ]
    return sorted(rows, key=lambda row: (-row.delay, -row.last, row.member))


def lateness_by_step(job: Job, found: Arrivals) -> Int64:
    """int64[ranks, steps]: sum of how long after the median of the others each rank came, ABSENT without any."""
    table = job.table
    shape = len(job.sources), len(job.steps)
    rows = np.flatnonzero((found.late != ABSENT) & (table.step >= 0))
    cell = table.member[rows].astype(np.int64) * shape[1] + table.step[rows]
    sums = np.zeros(shape[0] * shape[1], np.int64)
    np.add.at(sums, cell, found.late[rows])
    seen = np.bincount(cell, minlength=len(sums)) > 0
    return np.where(seen, sums, ABSENT).reshape(shape)


class Meanwhile(msgspec.Struct, frozen=True):
    """What a rank did before the collectives where it came last, beside the rank that came in the middle; ns.

    collectives  how many of these count; steps: in how many steps they lie
    categories   of the overview: (late, median) in order
    host, kernels  name -> (late, median or None where it is not among that rank's largest)
    """

    member: int
    collectives: int
    steps: int
    window: int
    median_window: int
    categories: list[tuple[int, int]]
    host: dict[str, tuple[int, int | None]]
    kernels: dict[str, tuple[int, int | None]]


def meanwhile(job: Job, matching: Matching, found: Arrivals, member: int) -> Meanwhile:
    """Summed over the collectives where this rank came last, of those with a window on both sides the ones that
    make up MOST_LATENESS of its lateness. Windows of different groups may overlap; then the latest arrival counts.
    """
    table = job.table
    middle_of = np.full(len(matching), NO_CODE)
    rows = np.flatnonzero(found.middle)
    middle_of[matching.instance[rows]] = rows
    told = np.flatnonzero((found.last >= 0) & ~found.cut)
    told = told[table.member[found.last[told]] == member]
    last, between = found.last[told], middle_of[told]
    both = (table.window[last] != ABSENT) & (table.window[between] != ABSENT)
    last, between = last[both], between[both]
    chosen = _apart(table, last, _latest(found.late[last]))
    late, middle = _Windows(job), _Windows(job)
    for i in chosen.tolist():
        late.add(int(last[i]))
        middle.add(int(between[i]))
    pairs = zip(late.categories.tolist(), middle.categories.tolist(), strict=True)
    return Meanwhile(
        member,
        len(chosen),
        len(np.unique(table.step[last[chosen]])),
        late.total,
        middle.total,
        list(pairs),
        {name: (time, middle.host.get(name)) for name, time in late.host.items()},
        {name: (time, middle.kernels.get(name)) for name, time in late.kernels.items()},
    )


def _latest(late: Int64) -> Int64:
    """Positions of the largest that make up MOST_LATENESS of the sum, largest first."""
    order = np.argsort(-late, kind="stable")
    reached = np.cumsum(late[order])
    found: Int64 = order[: int(np.searchsorted(reached, MOST_LATENESS * reached[-1])) + 1] if len(order) else order
    return found


def _apart(table: JobTable, rows: Int64, order: Int64) -> Int64:
    """Of these positions in rows those whose windows do not overlap; the first ones have precedence."""
    ends = table.start[rows]
    begins = ends - table.window[rows]
    taken: list[tuple[int, int]] = []
    chosen = []
    for i in order.tolist():
        window = int(begins[i]), int(ends[i])
        at = bisect(taken, window)
        free = at == len(taken) or taken[at][0] >= window[1]
        if free and (at == 0 or taken[at - 1][1] <= window[0]):
            taken.insert(at, window)
            chosen.append(i)
    return np.array(chosen, np.int64)


class _Windows:
    """Sums over what came before some operations."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.total = 0
        self.categories = np.zeros(len(CATEGORIES), np.int64)
        self.host: dict[str, int] = {}
        self.kernels: dict[str, int] = {}

    def add(self, row: int) -> None:
        """Count one operation."""
        summary = self._job.sources[self._job.table.member[row]].summary
        cell, names = summary.table()[self._job.table.row[row]], summary.names
        self.total += int(cell["window"])
        self.categories += cell["categories"]
        for sums, codes, times in (
            (self.host, cell["host"], cell["host_ns"]),
            (self.kernels, cell["kernels"], cell["kernel_ns"]),
        ):
            for code, time in zip(codes.tolist(), times.tolist(), strict=True):
                if code >= 0:
                    sums[names[code]] = sums.get(names[code], 0) + time
