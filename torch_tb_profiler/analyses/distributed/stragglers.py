"""How much each rank keeps the others waiting, and what stragglers spend their extra time on.

A rank that itself waits for others (in another group) is late through no fault of its own: only the rest of its
lateness is its delay. Not every delay costs, as others may compute in the meantime (see `costs`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.comparison import RankComparison
from torch_tb_profiler.analyses.distributed.costs import StragglerCosts
from torch_tb_profiler.analyses.distributed.job import DistributedJob, RankDetailsCache
from torch_tb_profiler.analyses.distributed.operations import select
from torch_tb_profiler.analyses.distributed.rank_summary import MAX_KERNELS, RankSummary
from torch_tb_profiler.analyses.distributed.waiting import Arrivals, WaitingSplit
from torch_tb_profiler.analyses.distributed.work_windows import WorkWindows, windows_of_ranks
from torch_tb_profiler.analyses.shared.breakdown import CATEGORIES
from torch_tb_profiler.analyses.shared.grouping import group, positions_by_value
from torch_tb_profiler.base.arrays import distinct_numbers, median, sums_by_number
from torch_tb_profiler.base.intervals import covered_time, merge, merge_by_owner
from torch_tb_profiler.model.trace import NO_CODE, Int64

EXCESS_COVERAGE = 0.95
"""Share of a rank's extra time that the reported windows must cover."""

MAX_SHIFTED_SHARE = 0.5
"""A kernel takes longer if the rank runs at least this share of the difference beyond others in entire steps."""

_COMMUNICATION = CATEGORIES.index("communication")


class Straggler(msgspec.Struct, frozen=True):
    """How often and how much one rank is late.

    member       its index in the job's sources
    collectives  number of those it took part in whose last arrival is known; last: at how many it arrived last
    delay        ns that others waited through its own fault; see `_sum_delays`
    delay_per_step  ns over the number of its steps
    waiting      ns that it waited for others in all compared collectives; waiting_per_step likewise
    cost         ns per step that the job would save if it worked a typical time; cost_is_limit: it is at most that
    held_up_by   the rank whose lateness it passes on, None if it is late by itself
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
    cost_is_limit: bool = False


def stragglers(comparison: RankComparison, costs: StragglerCosts) -> list[Straggler]:
    """Return every rank that was compared with another, most cost first, then most delay.

    Of a rank whose collectives no other rank recorded, neither cost nor waiting is known. Collectives in which
    others waited before the last rank started to record don't count.
    """
    job, arrivals, split = comparison.job, comparison.arrivals, comparison.split
    if not split.compared.any():
        return []
    table, count = job.table, len(job.sources)
    known = arrivals.attributable
    attributed = known[comparison.matching.instance] & split.compared
    took_part = np.bincount(select(table.member, attributed), minlength=count)
    last = np.sort(arrivals.last[known])  # by rank, then by time, in which they are looked up many times as fast
    times_last = np.bincount(table.member[last], minlength=count)
    compared = np.flatnonzero(split.compared)
    member_of = select(table.member, compared)
    waiting = sums_by_number(member_of, select(split.waiting, compared), count)
    delays = _sum_delays(job, split, last, arrivals, _time_since_previous(job, costs.work)).tolist()
    rows = []
    for member in distinct_numbers(member_of):
        source = job.sources[member]
        steps, held_up_by = max(len(source.summary.steps), 1), int(costs.held_up_by[member])
        rows.append(
            Straggler(
                member=member,
                collectives=int(took_part[member]),
                last=int(times_last[member]),
                delay=delays[member],
                delay_per_step=delays[member] / steps,
                waiting=int(waiting[member]),
                waiting_per_step=int(waiting[member]) / steps,
                cost=float(costs.by_rank[member]),
                held_up_by=None if held_up_by == member else held_up_by,
            )
        )
    return sorted(rows, key=lambda row: (-row.cost, -row.delay, -row.last, row.member))


def _time_since_previous(job: DistributedJob, work: WorkWindows) -> Int64:
    """Return int64[k], the ns since the end of the group's previous operation, 0 where there is none."""
    since = np.zeros(len(job.table), np.int64)
    later = np.flatnonzero(work.previous >= 0)
    rows, previous = work.rows[later], work.rows[work.previous[later]]
    since[rows] = job.table.start[rows] - job.table.end[previous]
    return since


def _sum_delays(job: DistributedJob, split: WaitingSplit, rows: Int64, arrivals: Arrivals, since: Int64) -> Int64:
    """Return int64[ranks], the ns that others waited for each rank through its own fault.

    rows   operations that arrived last
    since  int64[k]  ns since the group's previous operation

    What a rank waited for others since the group's previous operation (or since the others arrived, if that was
    earlier) is not its fault. Time in which several collectives wait for it counts once.
    """
    table, compared = job.table, np.flatnonzero(split.compared)
    end = select(table.end, compared)
    begin = end - select(table.latency, compared)
    start, lateness = table.start[rows], arrivals.lateness[rows]
    earliest = start - np.maximum(lateness, since[rows])
    # Each rank gets its own range of one time line, so that one set of intervals serves all ranks.
    low = min(begin.min(initial=0), earliest.min(initial=0))
    width = int(end.max(initial=0)) - int(low) + 1
    compared_base, base = (select(table.member, part).astype(np.int64) * width - low for part in (compared, rows))
    waiting = merge(begin := compared_base + begin, begin + select(split.waiting, compared))
    fault = lateness - covered_time(waiting, base + earliest, base + start)
    return merge_by_owner(table.member[rows], start - fault, start).totals(len(job.sources))


# ---- activity -------------------------------------------------------------------------------------------


class RankTime(msgspec.Struct, frozen=True):
    """Time spent in one operation or frame.

    name    category, operator, frame, or kernel
    time    ns on the straggler
    median  ns on the median rank, None if it isn't among that rank's largest in every window
    most    ns on the median rank at most
    shifted  most of the difference is time that other ranks spend in other windows of the same steps
    """

    name: str
    time: int
    median: int | None
    most: int
    shifted: bool = False

    @property
    def excess(self) -> int:
        """Return the ns that the straggler spends more than the median rank, at least."""
        return 0 if self.shifted else self.time - self.most


class StragglerActivity(msgspec.Struct, frozen=True):
    """Where one straggler's extra time went, summed over the windows before the collectives it was late for.

    collectives, steps  number of those collectives, and of the steps they are in
    latest       the collective it was latest for
    busy, median_busy  ns of work in the windows on the straggler and on the median rank, without stalls for
                 communication
    excess       ns the straggler worked beyond the typical time
    categories   of the overview, in their order
    host, frames, kernels  largest difference first; `frames` are user code only
    short_names  kernel name of the straggler -> short name
    """

    member: int
    collectives: int
    steps: int
    latest: int
    busy: int
    median_busy: int
    excess: int
    categories: list[RankTime]
    host: list[RankTime]
    frames: list[RankTime]
    kernels: list[RankTime]
    short_names: Mapping[str, str]


def straggler_activity(
    comparison: RankComparison, work: WorkWindows, members: Sequence[int]
) -> list[StragglerActivity]:
    """Return what each of `members` spent extra time on; ranks without extra time are left out."""
    windows, details = _ComparedWindows(comparison.job, work), RankDetailsCache(comparison.job)
    rows = [_build_rank_activity(comparison, work, windows, details, member) for member in members]
    return [row for row in rows if row is not None]


def _build_rank_activity(
    comparison: RankComparison,
    work: WorkWindows,
    windows: _ComparedWindows,
    details: RankDetailsCache,
    member: int,
) -> StragglerActivity | None:
    """Sum the windows that make up EXCESS_COVERAGE of a rank's extra time, None without extra time."""
    table = comparison.job.table
    mine = windows_of_ranks(comparison.job, work, [member])
    excess = work.work[mine] - work.typical[mine]
    longer = np.flatnonzero(excess > 0)
    largest = longer[_find_largest_positions(excess[longer])]
    chosen = mine[largest]
    if len(chosen) == 0:
        return None
    straggler, typical = _ActivitySums(comparison.job, details), _ActivitySums(comparison.job, details)
    counterparts: set[int] = set()
    for mine, others in windows.pairs(chosen):
        counterparts.update(distinct_numbers(select(table.member, work.rows[others])))
        for sums, positions in ((straggler, mine), (typical, others)):
            for i in positions.tolist():
                sums.add(int(work.rows[i]), int(work.work[i]))

    def code_limit(other: int, name: str) -> int | None:
        """Assume that a rank that lists a name in no window at all runs nothing of that name."""
        return None if name in details.of_rank(other).names else 0

    def kernel_limit(other: int, name: str) -> int | None:
        known = _kernel_limit(comparison.sources[other].summary, name)
        return code_limit(other, name) if known is None else known

    kernels = _sort_by_excess(straggler.kernels, typical.kernels, kernel_limit)
    entire = _KernelsOfSteps(comparison.job, work, details, chosen, sorted(counterparts))
    kernels = [msgspec.structs.replace(each, shifted=entire.is_shifted(each)) for each in kernels]
    categories = zip(CATEGORIES, straggler.categories.tolist(), typical.categories.tolist(), strict=True)
    return StragglerActivity(
        member=member,
        collectives=len(chosen),
        steps=len(np.unique(table.step[work.rows[chosen]])),
        latest=int(comparison.matching.instance[work.rows[chosen[0]]]),
        busy=straggler.total,
        median_busy=typical.total,
        excess=int(excess[largest].sum()),
        categories=[RankTime(name, time, other, other) for name, time, other in categories],
        host=_sort_by_excess(straggler.host, typical.host, code_limit),
        frames=_sort_by_excess(straggler.frames, typical.frames, code_limit),
        kernels=sorted(kernels, key=lambda row: -row.excess),
        short_names=details.of_rank(member).short_names,
    )


def _find_largest_positions(excess: Int64) -> Int64:
    """Return the positions of the largest values that make up EXCESS_COVERAGE of the sum, largest first."""
    order = np.argsort(-excess, kind="stable")
    reached = np.cumsum(excess[order])
    return order[: int(np.searchsorted(reached, EXCESS_COVERAGE * reached[-1])) + 1] if len(order) else order


def _sort_by_excess(
    straggler: _NameSums, median: _NameSums, limit: Callable[[int, str], int | None]
) -> list[RankTime]:
    """Return the times by name, largest difference first; `limit`: see `_NameSums.most`."""
    rows = []
    for name, time in straggler.times.items():
        known, most = median.times.get(name), median.most(name, limit)
        rows.append(RankTime(name, time, known if known == most else None, most))
    return sorted(rows, key=lambda row: -row.excess)


def _kernel_limit(summary: RankSummary, name: str) -> int | None:
    """Return the ns of a kernel in the trace of a rank, None if its summary doesn't have all of them."""
    if len(summary.kernels) >= MAX_KERNELS:
        return None
    times = [total.time for total in summary.kernels if summary.names[total.name] == name]
    return sum(times) if times else None  # copies are none of them


class _ComparedWindows:
    """The windows of all ranks, indexed by the number that comparable windows share."""

    def __init__(self, job: DistributedJob, work: WorkWindows) -> None:
        self._work = work
        self._member, self._step = (select(column, work.rows) for column in (job.table.member, job.table.step))
        self._by_number = positions_by_value(work.window, int(work.window.max(initial=NO_CODE)) + 1)

    def pairs(self, chosen: Int64) -> Iterator[tuple[Int64, Int64]]:
        """Yield (windows of a rank, windows of a typical other rank) that cover `chosen`, those of one rank.

        A window that no other rank has can't be compared by itself, so the entire step is.
        """
        counterparts = [self._find_counterpart(i) for i in chosen.tolist()]
        whole = {
            int(self._step[i]) for i, other in zip(chosen.tolist(), counterparts, strict=True) if other is None
        }
        for i, other in zip(chosen.tolist(), counterparts, strict=True):
            if other is not None and int(self._step[i]) not in whole:
                yield np.array([i]), np.array([other])
        for step in sorted(whole):
            yield self._find_step_windows(int(self._member[chosen[0]]), step)

    def _find_counterpart(self, i: int) -> int | None:
        """Return the same window on the most typical other rank, None if no other rank has it."""
        same = self._by_number[self._work.window[i]]
        same = same[self._member[same] != self._member[i]]
        if len(same) == 0:
            return None
        return int(same[np.abs(self._work.work[same] - self._work.typical[i]).argmin()])

    def _find_step_windows(self, member: int, step: int) -> tuple[Int64, Int64]:
        """Return the windows of a rank in a step, and those of the other rank with the median work in it."""
        inside = np.flatnonzero(self._step == step)
        ranks = group(self._member[inside])
        totals, numbers = ranks.sums(self._work.work[inside]), self._member[inside][ranks.first]
        others = np.flatnonzero(numbers != member)
        mine = inside[self._member[inside] == member]
        if len(others) == 0:
            return mine, np.empty(0, np.int64)
        middle = others[np.argsort(totals[others], kind="stable")[(len(others) - 1) // 2]]
        return mine, inside[self._member[inside] == numbers[middle]]


class _KernelsOfSteps:
    """Kernels in all windows of the steps in which a rank is late, there and on ranks with the same windows.

    While one device or stream works longer before a collective, another one gets on with kernels that other ranks
    run in later windows. They are a consequence of being late, and no cause.
    """

    def __init__(
        self, job: DistributedJob, work: WorkWindows, details: RankDetailsCache, late: Int64, others: Sequence[int]
    ) -> None:
        self._job, self._details = job, details
        rows, steps = work.rows, np.unique(job.table.step[work.rows[late]])
        mine = windows_of_ranks(job, work, [int(job.table.member[rows[late[0]]])])
        mine = mine[np.isin(select(job.table.step, rows[mine]), steps)]
        mine = mine[np.argsort(work.window[mine])]
        self._mine, self._others = rows[mine], list[tuple[Int64, int]]()
        for other in others:
            theirs = windows_of_ranks(job, work, [other])
            theirs = theirs[np.isin(work.window[theirs], work.window[mine])]
            if len(theirs) == len(mine):
                theirs = theirs[np.argsort(work.window[theirs])]
                longer = int(np.maximum(work.work[theirs] - work.work[mine], 0).sum())
                self._others.append((rows[theirs], longer))

    def is_shifted(self, kernel: RankTime) -> bool:
        """Return whether the rank runs less than half of a difference beyond what others run in these steps.

        In windows in which another rank works longer, that may be in the kernel: it is late in turn, or runs later
        what this one runs first.
        """
        if not self._others or kernel.excess <= 0:
            return False
        typical = median([self._sum_times(rows, kernel.name)[0] - longer for rows, longer in self._others])
        time, unlisted = self._sum_times(self._mine, kernel.name)
        return time + unlisted - typical < MAX_SHIFTED_SHARE * kernel.excess

    def _sum_times(self, rows: Int64, name: str) -> tuple[int, int]:
        """Return the ns of a kernel in windows that list it, and the most that it can take in the others."""
        details = self._details.of_rank(int(self._job.table.member[rows[0]]))
        cells = details.table()[self._job.table.row[rows]]
        codes, times = cells["kernels"], cells["kernel_ns"]
        listed = codes == (details.names.index(name) if name in details.names else len(details.names))
        full = (codes[:, -1] != NO_CODE) & ~listed.any(axis=1)
        return int(times[listed].sum()), int(times[full, -1].sum())


class _NameSums:
    """Sums over windows of the time in the names that each window lists, those with most time.

    A name that a window doesn't list takes no longer in it than the last one that it lists, if it lists as many as
    it can.
    """

    def __init__(self) -> None:
        self.times: dict[str, int] = {}
        self._last_times: Counter[int] = Counter()
        self._last_where_listed: Counter[tuple[int, str]] = Counter()

    def add(self, member: int, names: Sequence[str], codes: Sequence[int], times: Sequence[int]) -> None:
        """Add what a window of a rank lists: codes of names, -1 where it lists fewer than it can, and times."""
        last = times[-1] if codes[-1] >= 0 else 0
        self._last_times[member] += last
        for code, time in zip(codes, times, strict=True):
            if code >= 0:
                self.times[names[code]] = self.times.get(names[code], 0) + time
                self._last_where_listed[member, names[code]] += last

    def most(self, name: str, limit: Callable[[int, str], int | None]) -> int:
        """Return the most that a name can take in all windows.

        limit  (rank, name) -> what the name takes at most where the rank's windows don't list it, None if unknown
        """
        most = self.times.get(name, 0)
        for member, last_times in self._last_times.items():
            beyond, known = last_times - self._last_where_listed[member, name], limit(member, name)
            most += beyond if known is None else min(beyond, known)
        return most


class _ActivitySums:
    """Sums over the windows before some operations."""

    def __init__(self, job: DistributedJob, details: RankDetailsCache) -> None:
        self._job, self._details = job, details
        self.total = 0
        self.categories = np.zeros(len(CATEGORIES), np.int64)
        self.host, self.frames, self.kernels = _NameSums(), _NameSums(), _NameSums()

    def add(self, row: int, work: int) -> None:
        """Add the window of one operation, without the time in which the rank stalled for communication."""
        cell = self._details.of_operation(row)
        member = int(self._job.table.member[row])
        names = self._details.of_rank(member).names
        categories = cell["categories"].copy()
        stalled = min(int(self._job.table.window[row]) - work, int(categories[_COMMUNICATION]))
        categories[_COMMUNICATION] -= max(stalled, 0)
        self.total += int(categories.sum())
        self.categories += categories
        for sums, codes, times in (
            (self.host, cell["host"], cell["host_ns"]),
            (self.frames, cell["frames"], cell["frame_ns"]),
            (self.kernels, cell["kernels"], cell["kernel_ns"]),
        ):
            sums.add(member, names, codes.tolist(), times.tolist())
