"""What following an advice can gain at most: the only place that says so."""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.analyses.overview.finding import Finding
from torch_tb_profiler.analyses.overview.idle import device_busy, step_windows
from torch_tb_profiler.base.intervals import covered, intersect, merge, subtract
from torch_tb_profiler.model.kinds import Kind, ends, of_kind
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import Trace, derived

WAITING_NS = 20_000
"""A runtime call that lasts longer while the device works waits for it: it blocks, or the queue is full."""


def gain(trace: Trace, finding: Finding) -> float:
    """Mean ns per complete step: the time that would go and in which nothing else passes.

    An upper bound. Less work of the device shortens a step by no more than the host waits for the device: a host
    that launches without ever waiting takes as long as before.
    """
    spans = steps(trace)
    kept = spans.complete
    alone = subtract(finding.during, finding.passes)
    mean = float(covered(alone, spans.starts[kept], spans.ends[kept]).sum()) / int(kept.sum())
    waits = _host_waits(trace) if finding.on_device else None
    return mean if waits is None else min(mean, waits)


@derived
def _host_waits(trace: Trace) -> float | None:
    """Mean ns per complete step in which the host waits for the device; None without recorded calls."""
    calls = of_kind(trace, Kind.RUNTIME, Kind.DRIVER)
    if len(calls) == 0:
        return None
    long = calls[trace.events.duration[calls] >= WAITING_NS]
    blocked = intersect(merge(trace.events.start[long], ends(trace)[long]), device_busy(trace))
    windows = step_windows(trace)
    inside = int(covered(blocked, windows.starts, windows.ends).sum())
    return (inside + _tail(trace, int(ends(trace)[calls].max()))) / int(steps(trace).complete.sum())


def _tail(trace: Trace, last_call: int) -> int:
    """ns by which the device outlasts the host after the last complete step."""
    spans = steps(trace)
    last = int(np.flatnonzero(spans.complete)[-1])
    host = int(spans.host_ends[last]) if spans.recorded else last_call
    return max(0, int(spans.ends[last]) - host)
