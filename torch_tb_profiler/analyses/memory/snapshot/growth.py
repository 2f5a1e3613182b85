"""What grew over the steps of a memory snapshot: blocks that are never freed, live bytes, and reserved bytes.

step       1     2     3     4     5
leak       x     xx    xxx   xxxx  xxxxx     blocks of most steps, none of which is ever freed
rhythm     x     x     xx    xx    xxx       blocks of each second step, none of which is ever freed: a leak too
window     x     xx    xxx   xxx   xxx       the oldest is freed: no leak
cache      x     xx    xx    xx    xx        silent since step 2: no leak

Steps are the annotated ones. Without annotations, a pass begins where the forward pass follows the backward pass.
Passes are grouped into steps if the optimizer allocates at regular intervals; else gradients may be accumulated
over any number of them, so passes are counted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from torch_tb_profiler.analyses.memory.snapshot.categories import (
    ACTIVATIONS,
    OPTIMIZER,
    backward_stacks,
    categorize_stacks,
)
from torch_tb_profiler.analyses.memory.snapshot.history import (
    AllocatorHistory,
    allocator_history,
    live_allocations,
)
from torch_tb_profiler.analyses.memory.snapshot.steps import snapshot_steps
from torch_tb_profiler.analyses.shared.memory_trends import ReservedRise
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.snapshots import ALLOC, OUT_OF_MEMORY, RecordedSnapshot
from torch_tb_profiler.model.trace import Int64

MIN_STEPS = 4
"""Fewest steps that show growth."""

MIN_STEADY_SHARE = 0.75
"""Growth happens in at least this share of the steps after the first one, which fills caches."""

MIN_REGULAR_STEPS = 4
"""A site that allocates in fewer steps, but in so many at least, leaks if it does so at regular intervals:"""

MAX_INTERVAL_RATIO = 2
"""the longest is at most so many times the shortest, and the last one isn't over for longer than that."""

MAX_SILENT_STEPS = 2
"""A site that hasn't allocated for this many steps no longer grows: a cache that is full."""

MAX_LIFE_STEPS = 2
"""A site that frees a block after this many steps or more holds a window of the latest ones, or a cache."""

MIN_RISE_SHARE = 0.01
"""A rise over all steps below this share of the peak is not worth naming."""

MAX_USED_RATIO = 0.5
"""Reserved memory that rises with the peaks of the steps, by at least this ratio, rises for their sake."""

_CHUNK_ENTRIES = 1 << 17


@dataclass(frozen=True)
class SiteGrowth:
    """Blocks of one stack (its code) that were allocated in `steps` steps since `since`, and are all in use."""

    stack: int
    bytes: int
    blocks: int
    steps: int
    since: int


@dataclass(frozen=True)
class SnapshotGrowth:
    """What grew over `steps` steps until `entry`; the sites that may leak, most bytes first.

    annotated  whether the steps are annotated ones
    noun       what a step is: "step", or "pass" where it is a forward and a backward pass of a step
    live       bytes per step by which memory in use rises although no site leaks, None if it doesn't
    rising     the stack whose blocks are most of that rise, None if no stack's are
    reserved   by how much reserved memory rises although tensors use much less more, None if it doesn't
    """

    entry: int
    steps: int
    annotated: bool
    noun: str
    leaks: tuple[SiteGrowth, ...]
    live: int | None
    rising: int | None
    reserved: ReservedRise | None

    @property
    def known(self) -> bool:
        """Return whether there are enough steps to tell."""
        return self.steps >= MIN_STEPS

    @property
    def leaked(self) -> int:
        return sum(site.bytes for site in self.leaks)


@derived
def snapshot_growth(snapshot: RecordedSnapshot, device: int) -> SnapshotGrowth | None:
    """Return what grew until the last failed allocation, else until the end; None without a history."""
    history = allocator_history(snapshot, device)
    if not len(history):
        return None
    failed = np.flatnonzero(snapshot.history.action[history.rows] == OUT_OF_MEMORY)
    entry = int(failed[-1]) if len(failed) else len(history) - 1
    begins, annotated, noun = _find_step_begins(snapshot, device, history, entry)
    if len(begins) < MIN_STEPS:
        return SnapshotGrowth(entry, len(begins), annotated, noun, (), None, None, None)
    leaks = _find_leaks(snapshot, history, begins, entry)
    levels = history.in_use[np.maximum(begins - 1, 0)]
    live = None if leaks else _rise_per_step(levels, history.peak_in_use)
    rising = None if live is None else _find_rising_stack(snapshot, history, begins, int(levels[-1] - levels[1]))
    reserved = _find_reserved_rise(history, begins, entry)
    return SnapshotGrowth(entry, len(begins), annotated, noun, leaks, live, rising, reserved)


def _find_reserved_rise(history: AllocatorHistory, begins: Int64, entry: int) -> ReservedRise | None:
    """Return how reserved memory rises, None if it doesn't or the highest peak so far rises nearly as much."""
    rise = _rise_per_step(history.reserved_after(np.maximum(begins - 1, 0)), history.peak_in_use)
    peaks = np.maximum.reduceat(history.in_use[: entry + 1], begins)[:-1]  # the last step may be cut
    if rise is None or len(peaks) < MIN_STEPS:
        return None
    highest = np.maximum.accumulate(peaks)
    used = (int(highest[-1]) - int(highest[1])) / (len(highest) - 2)
    return ReservedRise(rise, round(used)) if used < MAX_USED_RATIO * rise else None


def _find_step_begins(
    snapshot: RecordedSnapshot, device: int, history: AllocatorHistory, entry: int
) -> tuple[Int64, bool, str]:
    """Return the entries until `entry` with which steps begin, whether they are annotated, and what a step is."""
    annotated = np.array([step.begin for step in snapshot_steps(snapshot, device)], np.int64)
    annotated = np.unique(annotated[annotated <= entry])
    if len(annotated) >= MIN_STEPS:
        return annotated, True, "step"
    backward = backward_stacks(snapshot)
    categories = categorize_stacks(snapshot)
    forward, optimizer = ((categories == code) & ~backward for code in (ACTIVATIONS, OPTIMIZER))
    pass_of_stack = np.where(backward, -1, forward.astype(np.int8)).astype(np.int8)
    found, optimized, last = [], [np.empty(0, np.int64)], -1  # the first forward pass begins a step, too
    start = history.rows.start
    for begin in range(start, start + entry + 1, _CHUNK_ENTRIES):
        rows = slice(begin, min(begin + _CHUNK_ENTRIES, start + entry + 1))
        stack, allocates = snapshot.history.stack[rows], snapshot.history.action[rows] == ALLOC
        passes = np.where(allocates, pass_of_stack[stack], 0)
        optimized.append(np.flatnonzero(allocates & optimizer[stack]) + begin - start)
        at = np.flatnonzero(passes)
        if len(at):
            before = np.concatenate([[last], passes[at[:-1]]])
            found.append(at[(passes[at] == 1) & (before == -1)] + begin - start)
            last = int(passes[at[-1]])
    begins = np.concatenate(found) if found else np.empty(0, np.int64)
    return _group_passes(begins, np.concatenate(optimized))


def _group_passes(begins: Int64, optimized: Int64) -> tuple[Int64, bool, str]:
    """Return what `_find_step_begins` does of the passes that begin here and the allocations of the optimizer."""
    first = np.flatnonzero(np.diff(np.searchsorted(optimized, begins), prepend=-1) > 0)
    passes = np.diff(first, append=len(begins))  # of each step; the recording may cut the first and the last one
    if len(first) >= MIN_STEPS and (passes[1:-1] == passes[1]).all() and passes[[0, -1]].max() <= passes[1]:
        return begins[first], False, "step"
    return begins, False, "pass"


def _find_leaks(
    snapshot: RecordedSnapshot, history: AllocatorHistory, begins: Int64, entry: int
) -> tuple[SiteGrowth, ...]:
    """Return the sites with blocks of most steps or of regular ones, none of which was freed later.

    Most bytes first.
    """
    live = live_allocations(history, entry)
    step = np.searchsorted(begins, live, "right") - 1
    live, step = live[step >= 0], step[step >= 0]
    rows = history.rows.start + live
    stack, size = snapshot.history.stack[rows], snapshot.history.size[rows]
    count = len(begins)
    found = []
    for code in np.unique(stack).tolist():
        mine = stack == code
        steps_of_site = np.unique(step[mine])
        if code and (_is_steady(steps_of_site, count) or _is_regular(steps_of_site, count)):
            since = int(live[mine][0])
            found.append(SiteGrowth(code, int(size[mine].sum()), int(mine.sum()), len(steps_of_site), since))
    windows = _find_freed_late(snapshot, history, begins, entry, [site.stack for site in found])
    found = [site for site in found if site.stack not in windows]
    found.sort(key=lambda site: (-site.bytes, site.stack))
    enough = sum(site.bytes for site in found) >= MIN_RISE_SHARE * history.peak_in_use
    return tuple(found) if enough else ()


def _is_steady(steps_of_site: Int64, count: int) -> bool:
    """Return whether a site allocates in most steps; `count`: of all steps."""
    silent = count - 1 - int(steps_of_site[-1])
    later = int((steps_of_site > 0).sum())
    return silent < MAX_SILENT_STEPS and later >= MIN_STEADY_SHARE * (count - 1 - silent)


def _is_regular(steps_of_site: Int64, count: int) -> bool:
    """Return whether a site allocates at regular intervals until the end; `count`: of all steps."""
    if len(steps_of_site) < MIN_REGULAR_STEPS:
        return False
    intervals = np.diff(steps_of_site)
    longest = min(int(intervals.max()), MAX_INTERVAL_RATIO * int(intervals.min()))
    return int(intervals.max()) == longest and count - 1 - int(steps_of_site[-1]) <= longest


def _find_freed_late(
    snapshot: RecordedSnapshot, history: AllocatorHistory, begins: Int64, entry: int, stacks: list[int]
) -> set[int]:
    """Return which of some stacks freed a block as old as MAX_LIFE_STEPS; those of the first step don't count."""
    if not stacks:
        return set()
    suspects = np.zeros(snapshot.stack_count, np.bool_)
    suspects[stacks] = True
    found: set[int] = set()
    start = history.rows.start
    for begin in range(start, start + entry + 1, _CHUNK_ENTRIES):
        freed = snapshot.history.freed[begin : min(begin + _CHUNK_ENTRIES, start + entry + 1)]
        at = np.flatnonzero(freed >= 0)
        source = freed[at]
        mine = suspects[snapshot.history.stack[source]]
        at, source = at[mine] + begin - start, source[mine]
        allocated = np.searchsorted(begins, source - start, "right") - 1
        late = (np.searchsorted(begins, at, "right") - 1 - allocated >= MAX_LIFE_STEPS) & (allocated > 0)
        found.update(np.unique(snapshot.history.stack[source[late]]).tolist())
    return found


def _rise_per_step(levels: Int64, peak: int) -> int | None:
    """Return the mean rise of levels at the steps after the first, None if it isn't steady and going on."""
    if len(levels) <= MIN_STEPS:
        return None
    changes = np.diff(levels[1:])
    total = int(levels[-1] - levels[1])
    steady = bool((changes > 0).mean() >= MIN_STEADY_SHARE) and bool(changes[-1] > 0)  # else a window is full
    return total // len(changes) if steady and total >= MIN_RISE_SHARE * peak else None


def _find_rising_stack(
    snapshot: RecordedSnapshot, history: AllocatorHistory, begins: Int64, total: int
) -> int | None:
    """Return the stack whose blocks are most of the `total` bytes more from the second step to the last one."""
    sums = []
    for begin in (int(begins[1]), int(begins[-1])):
        rows = history.rows.start + live_allocations(history, max(begin - 1, 0))
        stack, size = snapshot.history.stack[rows], snapshot.history.size[rows]
        sums.append(np.bincount(stack, size, minlength=snapshot.stack_count))
    rise = sums[1] - sums[0]
    code = int(rise.argmax())
    return code if code and 2 * rise[code] > total else None
