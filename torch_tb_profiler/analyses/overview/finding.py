"""What a rule finds: what it would take out of a step, and where that is seen."""

from __future__ import annotations

import msgspec

from torch_tb_profiler.base.intervals import EMPTY, Intervals

LEAST_GAIN = 0.02
"""Advice whose gain is a smaller share of the step is not worth a person's time."""


class Finding(msgspec.Struct, frozen=True):
    """A rule that applies.

    id         of the rule
    during     time that its advice would take away
    passes     time that passes anyway: what of `during` it covers is no gain
    on_device  `during` is work of the device, which only counts where the host waits for it
    case       which words of the rule fit
    subject    name of what causes it, "" where that has none; place: the user's frame around it
    value      the number in question, where the rule has one
    event      row of an example; window: (begin, end) ns of the stretch that shows it
    """

    id: str
    during: Intervals = EMPTY
    passes: Intervals = EMPTY
    on_device: bool = False
    case: str = ""
    subject: str = ""
    place: str = ""
    value: float | None = None
    event: int | None = None
    window: tuple[int, int] | None = None


class Advice(msgspec.Struct, frozen=True):
    """A finding with its gain: ns per step at most, and as a share of the step. None where no time is to gain."""

    finding: Finding
    gain_ns: float | None
    gain_share: float | None
