"""Ranks that are late once: an event, such as a checkpoint on one rank, but no straggler.

A straggler works longer than is typical in most of the typical steps. What happens in a step that is odd on most
ranks, or in fewer than half of the steps, isn't a cost of each step.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.job import DistributedJob
from torch_tb_profiler.analyses.distributed.matching import match_collectives
from torch_tb_profiler.analyses.distributed.operations import select
from torch_tb_profiler.analyses.distributed.rank_summary import RANK_STEP
from torch_tb_profiler.analyses.distributed.work_windows import WorkWindows
from torch_tb_profiler.base.arrays import sums_by_number
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.trace import NO_CODE, Bool, Float64, Int64

MIN_RECURRING_RATIO = 0.25
"""A rank is late in a step if it works at least this ratio of its mean excess longer than is typical in it."""

MIN_EVENT_RATIO = 6.0
"""Lateness in a few steps is an event if it is this many times the root mean square of all other lateness,"""

MIN_EVENT_SHARE = 0.1
"""and at least this share of a step."""

MIN_APART_RATIO = 3.0
"""Of several ranks, each is this many times as late as any other rank in any step,"""

MAX_EVENTS_SHARE = 0.2
"""and together they are late in at most this share of all steps of all ranks."""

MIN_STEPS = 3
"""Fewest steps that show whether lateness recurs."""


class LateOnce(msgspec.Struct, frozen=True):
    """A rank that is late in few steps.

    steps   names of these, in order
    all_steps  number of steps of the job
    excess  ns that it works longer than is typical in the worst of them
    name    the frame, operator, or kernel in which it spends most of that, "" if no single one is known
    """

    member: int
    steps: tuple[str, ...]
    all_steps: int
    excess: int
    name: str = ""


class _JobSteps(msgspec.Struct, frozen=True):
    """Which steps of a job count, bool[steps + 1] each; the last cell is for what is outside of them.

    typical  see `_find_job_steps`; counted: see `typical_job_steps`
    """

    typical: Bool
    counted: Bool


@derived
def _find_job_steps(job: DistributedJob) -> _JobSteps:
    """Return which steps are typical on at least half of the ranks that complete them, and which of them count.

    What is outside of the steps counts where nothing is inside: a recording may begin or end in the middle of a
    step, which isn't one of those that a mean is over. Where ranks communicate in no typical step, as if gradients
    are reduced in every fourth only, all steps count: lateness shows in no other.
    """
    codes = {name: code for code, name in enumerate(job.steps)}
    numbers: dict[tuple[str, ...], list[int]] = {}  # most ranks have the same steps
    which: list[int] = []
    for source in job.sources:
        names = source.summary.steps.names
        if names not in numbers:
            numbers[names] = [codes[name] for name in names]
        which += numbers[names]
    table = np.frombuffer(b"".join([source.summary.steps.parts for source in job.sources]), RANK_STEP)
    complete, typical = (
        np.bincount(which, table[flag], minlength=len(codes) + 1) if which else np.zeros(len(codes) + 1)
        for flag in ("complete", "typical")
    )
    usual: Bool = 2 * typical >= complete
    communicating = _find_communicating_steps(job)
    if not (usual & communicating)[:-1].any():
        usual[:] = True
    usual[-1] = not communicating[:-1].any()
    member = np.repeat(np.arange(len(job.sources)), [len(source.summary.steps) for source in job.sources])
    shared: Bool = usual & (complete >= len(np.unique(member[table["complete"] != 0])))
    begins = np.zeros_like(shared)
    begins[[each[0] for each in numbers.values() if each]] = True
    whole = shared & (~begins if np.count_nonzero(begins) > 1 else True)
    enough = (each for each in (whole, shared) if np.count_nonzero((each & communicating)[:-1]) >= MIN_STEPS)
    return _JobSteps(usual, next(enough, usual))


def typical_job_steps(job: DistributedJob) -> Bool:
    """Return bool[steps + 1]: the typical steps of the job, of which all ranks complete each if enough are such.

    Recordings may begin and end at different steps. In one that a rank didn't record, the others may wait for it,
    which then seems to be absent. And what a rank does between the steps counts to the later one, but not to the
    first one that it recorded.
    """
    return _find_job_steps(job).counted


@derived
def _find_communicating_steps(job: DistributedJob) -> Bool:
    """Return bool[steps + 1]: in which steps of the job any rank communicates."""
    found = np.zeros(len(job.steps) + 1, np.bool_)
    found[job.table.step] = True  # the last cell: outside of them
    return found


def judged_steps(job: DistributedJob) -> Bool:
    """Return bool[steps]: the typical steps in which ranks communicate, as no rank can be late in the others."""
    return (typical_job_steps(job) & _find_communicating_steps(job))[:-1]


def are_typical(job: DistributedJob, names: Sequence[str]) -> bool:
    """Return whether all steps of these names are typical ones of the job."""
    return bool(_find_job_steps(job).typical[[job.steps.index(name) for name in names]].all())


def has_odd_steps(job: DistributedJob) -> bool:
    """Return whether some steps of the job are not typical."""
    return not bool(_find_job_steps(job).typical[:-1].all())


def count_typical_steps(job: DistributedJob, member: int) -> int:
    """Return how many typical steps of the job a rank recorded, at least 1 as a divisor."""
    names, counted = job.sources[member].summary.steps.names, typical_job_steps(job)[:-1]
    left_out = {job.steps[code] for code in np.flatnonzero(~counted).tolist()}
    return max(sum(name not in left_out for name in names) if left_out else len(names), 1)


def without_odd_steps(job: DistributedJob, work: WorkWindows) -> WorkWindows:
    """Return the windows such that no rank exceeds what is typical in steps that aren't typical themselves."""
    typical_steps = typical_job_steps(job)
    if typical_steps.all():
        return work
    counted = typical_steps[select(job.table.step, work.rows)]
    return msgspec.structs.replace(work, typical=np.where(counted, work.typical, work.work))


def excess_by_step(job: DistributedJob, work: WorkWindows) -> Float64:
    """Return float64[ranks, steps], the ns that each rank works longer than is typical in each step."""
    return sums_by_step(job, work, work.excess)[:, :-1]


def sums_by_step(job: DistributedJob, work: WorkWindows, values: Int64) -> Float64:
    """Return float64[ranks, steps + 1], the sums of int64[m] values of windows; outside of steps is the last."""
    member, step = (select(column, work.rows) for column in (job.table.member, job.table.step))
    width = len(job.steps) + 1
    cell = member.astype(np.int64) * width
    cell += step if step.min(initial=0) >= 0 else np.where(step == NO_CODE, width - 1, step)
    sums = sums_by_number(cell, values, len(job.sources) * width)
    return sums.astype(np.float64).reshape(-1, width)


def is_late_in_most_steps(job: DistributedJob, work: WorkWindows, members: tuple[int, ...]) -> bool:
    """Return whether these ranks together are late in more than half of the typical steps with communication."""
    late = excess_by_step(job, work)[list(members)].mean(axis=0)[judged_steps(job)]
    return len(late) < MIN_STEPS or is_in_most_steps(late)


def is_in_most_steps(late: Float64 | Int64) -> bool:
    """Return whether these ns, of each step, recur in more than half of the steps."""
    return 2 * int((late >= MIN_RECURRING_RATIO * late.mean()).sum()) > len(late)


def _lacks_collectives(job: DistributedJob) -> Bool:
    """Return bool[ranks, steps]: where a rank lacks a collective, so that it only seems late before the next.

    Its window is that of two collectives then.
    """
    lacks = np.zeros((len(job.sources), len(job.steps)), np.bool_)
    matching = match_collectives(job)
    for each in matching.mismatches:
        if each.what == "missing":
            found = job.table.step[matching.instance == each.instance]
            for members in each.values.values():
                lacks[np.ix_(np.array(members), np.unique(found[found != NO_CODE]))] = True
    return lacks


def find_late_once(
    job: DistributedJob, work: WorkWindows, step_ns: float, stragglers: Sequence[int] = ()
) -> tuple[LateOnce, ...]:
    """Return the ranks whose lateness in few steps stands out, latest first.

    step_ns     of a typical step
    stragglers  ranks that are late in most steps: for another one nobody waits in steps in which these are as late
    """
    numbers = np.flatnonzero(_find_communicating_steps(job)[:-1])
    late = np.where(_lacks_collectives(job), 0.0, np.maximum(excess_by_step(job, work), 0.0))[:, numbers]
    if late.size == 0 or late.shape[1] < MIN_STEPS:
        return ()
    others = np.delete(np.arange(len(late)), list(stragglers))
    hidden = late[list(stragglers)].max(axis=0, initial=0.0)
    late = late[others]
    found = []
    for row in find_events(late, max(MIN_EVENT_SHARE * step_ns, 1.0)) if len(others) else ():
        few = _in_few_steps(late[row])
        if (late[row, few] < hidden[few]).any():
            continue
        names = tuple(job.steps[code] for code in numbers[few].tolist())
        found.append(LateOnce(int(others[row]), names, len(job.steps), int(late[row].max())))
    return tuple(found)


def find_events(late: Float64, min_ns: float) -> list[int]:
    """Return the rows of float64[ranks, steps], ns, with a few cells that stand out, highest first.

    Events of several ranks hide each other in the mean of the rest, so as many ranks are taken as stand out from
    what is left without all of them. That is little where much is left out, and easy to exceed by chance: further
    ranks must be far later than anything else is.

    min_ns  what a cell is at least
    """
    highest = late.max(axis=1)
    ordered = np.argsort(-highest, kind="stable")
    few = _in_few_steps(late)
    rest = np.where(few, 0.0, late)
    # What is left is summed up rank by rank: those that come later with all of their cells.
    squares, squares_of_rest = ((cells**2).sum(axis=1) for cells in (late, rest))
    squares_later = np.append(np.cumsum(squares[ordered][::-1])[::-1], 0.0)[1:]
    counts, highest_of_rest = few.sum(axis=1), rest.max(axis=1)
    cells_of_chosen, squares_left, highest_left, found = 0, 0.0, 0.0, 0
    chosen: list[int] = []
    for place, member in enumerate(ordered.tolist()):
        if highest[member] < min_ns or 2 * counts[member] > late.shape[1]:
            if not chosen:
                break  # the latest one is late in most steps
            squares_left += float(squares[member])
            highest_left = max(highest_left, float(highest[member]))
            continue
        chosen.append(member)
        cells_of_chosen += int(counts[member])
        squares_left += float(squares_of_rest[member])
        highest_left = max(highest_left, float(highest_of_rest[member]))
        if len(chosen) > 1 and cells_of_chosen > MAX_EVENTS_SHARE * late.size:
            break
        count = late.size - cells_of_chosen
        noise = float(np.sqrt((squares_left + squares_later[place]) / count)) if count else 0.0
        next_highest = float(highest[ordered[place + 1]]) if place + 1 < len(ordered) else 0.0
        apart = len(chosen) == 1 or highest[member] >= MIN_APART_RATIO * max(highest_left, next_highest)
        if apart and highest[member] >= MIN_EVENT_RATIO * noise:
            found = len(chosen)
    return chosen[:found]


def _in_few_steps(late: Float64) -> Bool:
    """Return bool[..., steps]: those in which a rank is at least half as late as in its worst one."""
    few: Bool = late >= late.max(axis=-1, keepdims=True) / 2
    return few
