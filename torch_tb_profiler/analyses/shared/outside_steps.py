"""Time between the first step and the last that belongs to no step, such as an evaluation between two of them.

host    |- step 3 -|- step 4 -|-- evaluate --|- step 5 -|
                              |<- outside -->|
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.odd_steps import MIN_CAUSE_SHARE, named_slices
from torch_tb_profiler.base.intervals import covered_time, merge
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.kinds import event_intervals, event_spans
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import NO_CODE, Int64, Trace

MIN_OUTSIDE_SHARE = 0.05
"""Smallest share of the time from the first step to the last that is worth naming; the profiler itself takes a
little between two steps."""

MAX_IN_STEPS_SHARE = 0.1
"""Code that runs for more than this share of the steps, such as the loop over them, explains no time outside."""


class OutsideSteps(msgspec.Struct, frozen=True):
    """What no average of steps counts, in ns.

    time     between the first step and the last, outside of all steps
    share    of the time from the first step to the last
    stretches  their number; after: the step before the longest
    name     what takes more than MIN_CAUSE_SHARE of it, "" if no single annotation, frame, operator or kernel does
    event    row of its longest call, NO_CODE without a name
    """

    time: int
    share: float
    stretches: int
    after: str
    name: str
    event: int


@derived
def outside_steps(trace: Trace) -> OutsideSteps | None:
    """Return the time outside of steps, or None if it is small, or if steps are an engine's iterations."""
    spans = steps(trace)
    if not spans.recorded or spans.vary or len(spans.starts) < 2:
        return None
    # Steps reach to the end of their device work, so the next one may have begun.
    starts, ends = np.maximum.accumulate(spans.ends)[:-1], spans.starts[1:]
    lengths = np.maximum(ends - starts, 0)
    duration = int(spans.ends.max() - spans.starts.min())
    time = int(lengths.sum())
    if duration <= 0 or time < MIN_OUTSIDE_SHARE * duration:
        return None
    longest = int(np.argmax(lengths))
    name, event = _find_name(trace, starts[lengths > 0], ends[lengths > 0])
    counted = int(np.count_nonzero(lengths >= MIN_OUTSIDE_SHARE * time))
    return OutsideSteps(time, time / duration, counted, spans.names[longest], name, event)


def _find_name(trace: Trace, starts: Int64, ends: Int64) -> tuple[str, int]:
    """Return (name, row) of the code that takes most of these stretches."""
    spans = steps(trace)
    in_steps = int((spans.ends - spans.starts).sum())
    least, stretches = MIN_CAUSE_SHARE * int((ends - starts).sum()), merge(starts, ends)
    for rows in named_slices(trace):
        within = covered_time(stretches, *event_spans(trace, rows))
        sums = np.bincount(trace.events.name[rows], within)
        found = []
        for code in np.flatnonzero(sums >= least).tolist():
            mine = rows[trace.events.name[rows] == code]
            runs = event_intervals(trace, mine)
            inside = int(covered_time(runs, starts, ends).sum())
            elsewhere = int((runs.ends - runs.starts).sum()) - inside
            if inside > least and elsewhere <= MAX_IN_STEPS_SHARE * in_steps:
                found.append((inside, mine))
        if found:
            _, mine = min(found, key=lambda each: each[0])
            event = int(mine[np.argmax(trace.events.duration[mine])])
            return trace.strings[trace.events.name[event]], event
    return "", NO_CODE
