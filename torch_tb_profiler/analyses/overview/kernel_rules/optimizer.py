"""Optimizers that step parameter by parameter, with kernels for each or, without a device, with operators.

launches    |mul_ mul_ .. mul_|lerp_ .. lerp_|add_ .. add_|      each passes over all parameters
fused       |one kernel: at least what the operator that moves least does|
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torch_tb_profiler.analyses.overview.finding import Finding
from torch_tb_profiler.analyses.overview.idle import device_busy, host_late_times
from torch_tb_profiler.analyses.overview.kernel_rules.excess import other_device_work, times_after_share
from torch_tb_profiler.analyses.shared.attainable import attainable_ns, owning_calls, roofline_shares
from torch_tb_profiler.analyses.shared.grouping import group
from torch_tb_profiler.base.arrays import distinct, search_sorted
from torch_tb_profiler.base.intervals import Intervals, intersect, merge, subtract, total, union
from torch_tb_profiler.base.markers import is_optimizer_step
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.calls.autograd import backward_tasks
from torch_tb_profiler.model.calls.calltree import enclosing_operators
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.kernels.families import FAMILIES, family_codes
from torch_tb_profiler.model.kinds import (
    DEVICE_KINDS,
    Kind,
    event_ends,
    event_intervals,
    event_kinds,
    rows_named,
    rows_of_kind,
)
from torch_tb_profiler.model.trace import Bool, Int32, Int64, Trace, rows_mask
from torch_tb_profiler.model.work.operator_work import operator_work

MIN_PARAMETERS = 8
"""Fewest calls of one operator per optimizer step that are worth a list of parameters."""

MAX_LATENCY_BOUND_NS = 10_000
"""Longest kernel that takes mostly its start, ns."""

FUSED_ON_CPU = ("Adam", "AdamW", "SGD", "Adagrad")
"""Optimizers of PyTorch with `fused=True` for parameters on the CPU (from 2.4 on)."""


def find_optimizer_loop(trace: Trace) -> Iterator[Finding]:
    """Find idle time until the launches, or the kernels' time beyond one pass, whichever is longer.

    One kernel for all parameters has no gaps either, so those between the kernels count beside their time.
    """
    marks = optimizer_marks(trace)
    links = device_links(trace)
    launched = links.launch >= 0
    rows, calls, operators = links.rows[launched], links.launch[launched], links.operator[launched]
    # Copies of an offloaded optimizer are as many with any implementation.
    mine = in_optimizer(trace, calls) & (event_kinds(trace)[rows] == Kind.KERNEL)
    rows, operators = rows[mine], operators[mine]
    if len(rows) == 0 or (family_codes(trace)[rows] == FAMILIES.index("optimizer")).any():
        return  # these are kernels for lists of parameters
    count = _count_calls_per_step(trace, marks, operators[operators >= 0])
    if count < MIN_PARAMETERS:
        return
    waits = subtract(intersect(host_late_times(trace), _find_step_times(trace, marks)), device_busy(trace))
    # How fast these could be is unknown without shapes, but most of so short a kernel is its start.
    known = ~np.isnan(roofline_shares(trace, rows))
    known |= trace.events.duration[rows] <= MAX_LATENCY_BOUND_NS
    slow = times_beyond_one_pass(trace, rows[known])
    on_device = total(subtract(slow, other_device_work(trace, rows))) > total(waits)
    longest = int(marks[np.argmax(trace.events.duration[marks])])
    yield Finding(
        "optimizer_loop",
        union(slow, gaps_between(trace, rows)) if on_device else waits,
        other_device_work(trace, rows) if on_device else device_busy(trace),
        rows,
        # Not `on_device`: one kernel for all parameters relieves the host of launches, too.
        case="kernels" if on_device else "launches",
        subject=trace.strings[trace.events.name[longest]].partition("#")[2],
        value=count,
        event=longest,
    )


def optimizer_times(trace: Trace) -> Intervals:
    """Return when the host is in the step of an optimizer."""
    return _find_step_times(trace, optimizer_marks(trace))


def optimizer_steps(trace: Trace, rows: Int32) -> Int64:
    """Return int64[k]: the step of an optimizer that launches each of these kernels."""
    links = device_links(trace)
    calls = links.launch[np.searchsorted(links.rows, rows)]
    steps: Int64 = np.searchsorted(optimizer_times(trace).starts, trace.events.start[calls], "right")
    return steps


def times_beyond_one_pass(trace: Trace, rows: Int32) -> Intervals:
    """Return when these kernels run, without the first share of each that one kernel for all of a step needs."""
    step, share = optimizer_steps(trace, rows), np.zeros(len(rows))
    for number in distinct(step):
        mine = step == number
        share[mine] = min(
            _estimate_one_pass_ns(trace, rows[mine]) / max(trace.events.duration[rows[mine]].sum(), 1), 1.0
        )
    return times_after_share(trace, rows, share)


def _estimate_one_pass_ns(trace: Trace, rows: Int32) -> float:
    """Return the least ns of one kernel for the parameters that these kernels work on, 0 where that is unknown.

    Each operator passes over all of them, so that kernel moves no less than the operator that moves least.
    """
    work, calls = operator_work(trace), distinct(owning_calls(trace, rows)).astype(np.int64)
    calls = calls[calls >= 0]
    operators = group(work.owners.name[calls].astype(np.int64))
    moved = np.bincount(operators.which, np.nan_to_num(work.bytes[calls]), len(operators))
    moved = moved[operators.counts >= MIN_PARAMETERS]
    if len(moved) == 0:
        return 0.0
    return float(np.nan_to_num(attainable_ns(trace, calls, moved_bytes=float(moved.min()))[0]))


def gaps_between(trace: Trace, rows: Int32) -> Intervals:
    """Return when every device is idle between two of these kernels that one step of an optimizer launches."""
    step = optimizer_steps(trace, rows)
    order = np.lexsort((trace.events.start[rows], step))
    start, end, step = trace.events.start[rows][order], event_ends(trace)[rows][order], step[order]
    follows = (step[1:] == step[:-1]) & (start[1:] > end[:-1])
    return subtract(merge(end[:-1][follows], start[1:][follows]), device_busy(trace))


def find_optimizer_on_cpu(trace: Trace) -> Iterator[Finding]:
    """Find optimizers that call operators parameter by parameter on the CPU.

    One pass over the parameters is needed in any case, but how long it takes is unknown: most of the time of an
    operator on few numbers is its call.
    """
    if len(rows_of_kind(trace, *DEVICE_KINDS)):
        return
    marks = optimizer_marks(trace)
    if len(marks) == 0:
        return
    during = _find_step_times(trace, marks)
    operators = _find_operators_below(trace, marks, during)
    names = trace.events.name[operators]
    if len(names) == 0 or np.bincount(names).max() < MIN_PARAMETERS * len(marks):
        return
    mark = int(marks[np.argmax(trace.events.duration[marks])])
    optimizer = trace.strings[trace.events.name[mark]].partition("#")[2]
    if "fused" in optimizer.lower():
        return  # of a library that runs on GPUs, whose work isn't in the file
    fused = optimizer.partition(".")[0] in FUSED_ON_CPU
    yield Finding(
        "optimizer_on_cpu",
        during,
        case="fused" if fused else "other",
        subject=optimizer,
        value=int(np.bincount(names).max() // len(marks)),
        event=mark,
    )


def _find_operators_below(trace: Trace, marks: Int32, during: Intervals) -> Int32:
    """Return the operators that begin while an optimizer steps, in no other operator."""
    rows = rows_of_kind(trace, Kind.CPU_OP)
    rows = rows[~rows_mask(trace, marks)[rows]]
    at = np.searchsorted(during.starts, trace.events.start[rows], "right") - 1
    inside = (at >= 0) & (trace.events.start[rows] < during.ends[np.maximum(at, 0)])
    around = enclosing_operators(trace)[rows]
    below: Int32 = rows[inside & ((around < 0) | np.isin(around, marks))]
    return below


def in_optimizer(trace: Trace, rows: Int32) -> Bool:
    """Return bool[k]: which events begin while an optimizer steps, on any thread."""
    during = _find_step_times(trace, optimizer_marks(trace))
    if len(during.starts) == 0:
        return np.zeros(len(rows), np.bool_)
    start = trace.events.start.take(rows)
    at = search_sorted(during.starts, start, "right") - 1
    inside: Bool = (at >= 0) & (start < during.ends[np.maximum(at, 0)])
    return inside


@derived
def optimizer_marks(trace: Trace) -> Int32:
    """Return the rows of marks of an optimizer's step."""
    return rows_named(trace, is_optimizer_step, Kind.CPU_OP, Kind.ANNOTATION)


def _find_step_times(trace: Trace, marks: Int32) -> Intervals:
    """Return the steps of an optimizer without their closures, which compute gradients first, as of Lightning."""
    steps, tasks = event_intervals(trace, marks), backward_tasks(trace).rows
    start, end = trace.events.start[tasks], event_ends(trace)[tasks]
    at = np.searchsorted(steps.starts, start, "right") - 1
    inside = (at >= 0) & (end <= np.append(steps.ends, 0)[at])
    begin = steps.starts.copy()
    np.maximum.at(begin, at[inside], end[inside])
    return Intervals(begin, steps.ends)


def _count_calls_per_step(trace: Trace, marks: Int32, operators: Int32) -> int:
    """Return how often the most frequent operator is called per optimizer step, rounded down."""
    calls = distinct(operators)
    return int(np.bincount(trace.events.name[calls]).max() // len(marks)) if len(calls) else 0
