"""Which events a timeline draws, and which it only counts."""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.kinds import slice_mask
from torch_tb_profiler.model.trace import ABSENT, Bool, Trace

INSTANT_PHASES = b"iIR"
FLOW_PHASES = b"stf"


def of_phase(trace: Trace, phases: bytes) -> Bool:
    """bool[n]: events that have one of these phases."""
    mask: Bool = np.isin(trace.events.phase, np.frombuffer(phases, np.uint8))
    return mask


@derived
def all_slices(trace: Trace) -> Bool:
    """bool[n]: "X" events and matched "B"/"E" pairs, those without a time included."""
    mask: Bool = (trace.events.phase == ord("X")) | slice_mask(trace)
    return mask


def has_time(trace: Trace) -> bool:
    """Whether any event has a time: without one there is nothing to draw."""
    return bool((trace.events.start != ABSENT).any())


def drawn(trace: Trace) -> Bool:
    """bool[n]: slices and instants that have a time."""
    mask: Bool = (all_slices(trace) | of_phase(trace, INSTANT_PHASES)) & (trace.events.start != ABSENT)
    return mask


def count_phases(trace: Trace, phases: bytes) -> int:
    """How many events have one of these phases."""
    return int(of_phase(trace, phases).sum())


def count_other(trace: Trace) -> int:
    """How many events are neither slices, instants, counters, flows nor metadata, nor the end of a slice."""
    slices = all_slices(trace)
    known = slices | of_phase(trace, INSTANT_PHASES + FLOW_PHASES + b"CM")
    paired = int((slices & of_phase(trace, b"B")).sum())  # each has its "E"
    return int((~known).sum()) - paired
