"""What a rule finds: what it would take out of a step, and where that is seen."""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.base.intervals import NO_INTERVALS, Intervals
from torch_tb_profiler.model.trace import Int32

LEAST_GAIN = 0.02
"""Advice whose gain is a smaller share of the step is not worth a person's time."""


NO_ROWS: Int32 = np.empty(0, np.int32)

Basis = Literal["what_if", "share", "ranks"]
"""Where a gain comes from: the schedule replayed without what the advice takes away, what that takes
today, or what the files of all ranks say together."""


class Finding(msgspec.Struct, frozen=True):
    """A rule that applies.

    id         of the rule
    during     time that its advice would take away
    passes     time that passes anyway: what of `during` it covers is no gain
    rows       calls or device work that the advice is about, where a replay needs to know
    on_device  `during` is work of the device, which only counts where the host waits for it
    case       which words of the rule fit
    subject    name of what causes it, "" where that has none; place: the user's frame around it
    value      the number in question, where the rule has one
    event      row of an example; window: (begin, end) ns of the stretch that shows it
    """

    id: str
    during: Intervals = NO_INTERVALS
    passes: Intervals = NO_INTERVALS
    rows: Int32 = NO_ROWS
    on_device: bool = False
    case: str = ""
    subject: str = ""
    place: str = ""
    value: float | None = None
    event: int | None = None
    window: tuple[int, int] | None = None


class Gain(msgspec.Struct, frozen=True):
    """Mean ns per complete step.

    ns           what following the advice shortens the step by, at most
    measured_ns  what it takes away takes today, while nothing else passes; the same if that is the basis
    """

    ns: float
    measured_ns: float
    basis: Basis


class Advice(msgspec.Struct, frozen=True):
    """A finding, its gain, and that as a share of the step. None where no time is to gain."""

    finding: Finding
    gain: Gain | None
    gain_share: float | None
