"""Which events a timeline draws, and which it only counts."""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.kinds import slice_mask
from torch_tb_profiler.model.trace import ABSENT, Bool, Trace

INSTANT_PHASES = b"iIR"
FLOW_PHASES = b"stf"


def event_phase_mask(trace: Trace, phases: bytes) -> Bool:
    """Return a mask, bool[n], of the events that have one of these phases."""
    mask = np.zeros(len(trace), np.bool_)
    for phase in phases:  # comparing bytes is ten times faster than looking each up among a few
        mask |= trace.events.phase == phase
    return mask


@derived
def all_slices(trace: Trace) -> Bool:
    """Return a mask, bool[n], of "X" events and matched "B"/"E" pairs, including those without a time."""
    mask: Bool = (trace.events.phase == ord("X")) | slice_mask(trace)
    return mask


def has_time(trace: Trace) -> bool:
    """Return whether any event has a time; if none has, there is nothing to draw."""
    return bool((trace.events.start != ABSENT).any())


def drawable_mask(trace: Trace) -> Bool:
    """Return a mask, bool[n], of slices and instants that have a time."""
    mask: Bool = (all_slices(trace) | event_phase_mask(trace, INSTANT_PHASES)) & (trace.events.start != ABSENT)
    return mask


def count_phases(trace: Trace, phases: bytes) -> int:
    """Count the events that have one of these phases."""
    return int(event_phase_mask(trace, phases).sum())


def count_other(trace: Trace) -> int:
    """Count the events that are no slice or its end, instant, counter, flow, or metadata."""
    slices = all_slices(trace)
    known = slices | event_phase_mask(trace, INSTANT_PHASES + FLOW_PHASES + b"CM")
    paired = int((slices & event_phase_mask(trace, b"B")).sum())  # each has its "E"
    return int((~known).sum()) - paired
