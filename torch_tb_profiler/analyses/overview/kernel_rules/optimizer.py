"""Optimizers that step parameter by parameter, with kernels for each."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torch_tb_profiler.analyses.overview.finding import Finding
from torch_tb_profiler.analyses.overview.idle import device_busy, host_late_times
from torch_tb_profiler.analyses.overview.kernel_rules.excess import (
    other_device_work,
    roofline_shares,
    times_after_share,
)
from torch_tb_profiler.base.intervals import Intervals, intersect, subtract, total
from torch_tb_profiler.base.markers import is_optimizer_step
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.kernels.families import FAMILIES, family_codes
from torch_tb_profiler.model.kinds import Kind, event_intervals, rows_of_kind
from torch_tb_profiler.model.trace import Bool, Int32, Trace, name_mask

MIN_PARAMETERS = 8
"""Fewest calls of one operator per optimizer step that are worth a list of parameters."""


def find_optimizer_loop(trace: Trace) -> Iterator[Finding]:
    """Find idle time until the launches, or the kernels' time beyond the roofline, whichever is longer."""
    marks = _marks(trace)
    links = device_links(trace)
    launched = links.launch >= 0
    rows, calls, operators = links.rows[launched], links.launch[launched], links.operator[launched]
    mine = in_optimizer(trace, calls)
    rows, operators = rows[mine], operators[mine]
    if len(rows) == 0 or (family_codes(trace)[rows] == FAMILIES.index("optimizer")).any():
        return  # these are kernels for lists of parameters
    count = _calls_per_step(trace, marks, operators[operators >= 0])
    if count < MIN_PARAMETERS:
        return
    share = roofline_shares(trace, rows)
    known = ~np.isnan(share)
    waits = subtract(intersect(host_late_times(trace), _step_times(trace, marks)), device_busy(trace))
    slow = times_after_share(trace, rows[known], share[known])
    on_device = total(subtract(slow, other_device_work(trace, rows))) > total(waits)
    longest = int(marks[np.argmax(trace.events.duration[marks])])
    yield Finding(
        "optimizer_loop",
        slow if on_device else waits,
        other_device_work(trace, rows) if on_device else device_busy(trace),
        rows,
        on_device=on_device,
        case="kernels" if on_device else "launches",
        subject=trace.strings[trace.events.name[longest]].partition("#")[2],
        value=count,
        event=longest,
    )


def in_optimizer(trace: Trace, rows: Int32) -> Bool:
    """Return bool[k]: which events begin while an optimizer steps, on any thread."""
    during = _step_times(trace, _marks(trace))
    if len(during.starts) == 0:
        return np.zeros(len(rows), np.bool_)
    at = np.searchsorted(during.starts, trace.events.start[rows], "right") - 1
    inside: Bool = (at >= 0) & (trace.events.start[rows] < during.ends[np.maximum(at, 0)])
    return inside


def _marks(trace: Trace) -> Int32:
    marks = rows_of_kind(trace, Kind.CPU_OP, Kind.ANNOTATION)
    rows: Int32 = marks[name_mask(trace.strings, is_optimizer_step)[trace.events.name[marks]]]
    return rows


def _step_times(trace: Trace, marks: Int32) -> Intervals:
    return event_intervals(trace, marks)


def _calls_per_step(trace: Trace, marks: Int32, operators: Int32) -> int:
    """Return how often the most frequent operator is called per optimizer step, rounded down."""
    calls = np.unique(operators)
    return int(np.bincount(trace.events.name[calls]).max() // len(marks)) if len(calls) else 0
